"""What has to hold for the tables of a tree that comes from a file.

Kernels use indices as they are, so that each is checked here to lie within its table. Numbers are
checked to be such as rows that passed validation can have made: then nothing overflows later.
Bounds of single fields stand where the fields are declared, in `sapwood.tree.layout`; what has to
hold among them is here. All functions raise ValueError, with the reason and where.
"""
