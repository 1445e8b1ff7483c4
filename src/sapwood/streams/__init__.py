"""Rows in: files, pipes and generators, in chunks, at constant memory."""
