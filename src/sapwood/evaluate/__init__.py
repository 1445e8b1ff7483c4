"""Predict each row, then learn it, and keep the score."""
