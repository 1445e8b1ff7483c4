"""Rows in: arrays, mappings of columns, data frames and dicts become matrices of doubles."""
