"""The anomaly score of a tree in plain Python: one row, one leaf, one matrix product."""

import numpy as np

REACH = 100.0


def log_unusual(tree, row, values):
    """Return log(1 + a) of a row.

    Parameters
    ----------
    tree : TreeKernel
        The tree.
    row : array
        As the kernel reads it, by which the leaf is found.
    values : array
        The same, with numbers in place of the codes of categories.
    """
    leaf = tree.explain_row(row)[0]
    page = np.array(tree.model_page(leaf))
    centres_at, scales_at, covariance_at, terms = tree.page_parts()
    width = tree.features
    own = page[covariance_at:]
    covariance = own.reshape(terms, terms) if len(own) >= terms * terms else np.diag(own[:terms])
    z = np.zeros(terms)
    z[0] = 1.0
    for feature in range(width):
        distance = (values[feature] - page[centres_at + feature]) * page[scales_at + feature]
        z[1 + feature] = 0.0 if np.isnan(distance) else min(max(distance, -REACH), REACH)
    unusual = sum(z[i] * covariance[i, j] * z[j] for i in range(terms) for j in range(terms))
    rows = tree.leaf_table["rows"][leaf]
    return np.log1p(unusual * np.sqrt((rows + 1) * tree.rows) / (1 + width))
