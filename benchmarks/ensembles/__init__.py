"""Sapwood's forest compared with widely used ensembles, on the same rows and labels."""
