"""Sapwood's forest beside the ensembles that people use now, on the same rows and labels."""
