"""What the paper reports, to be compared with.

The average ranks are read from the coordinates of its four critical-difference diagrams, which
are the ranks times 1.2.
"""

__all__ = ["CELLS", "CRITICAL_DIFFERENCE", "RANKS", "differ_in_paper"]

CELLS = 684
CRITICAL_DIFFERENCE = 0.2332

RANKS: dict[str, dict[str, float]] = {
    "merit": {
        "E-BST": 1.5241,
        "TE-BST": 2.0219,
        "QO 0.01": 2.9430,
        "QO σ/3": 4.0914,
        "QO σ/2": 4.4196,
    },
    "elements": {
        "E-BST": 4.9912,
        "TE-BST": 4.0029,
        "QO 0.01": 3.0058,
        "QO σ/3": 2.0000,
        "QO σ/2": 1.0000,
    },
    "observe_seconds": {
        "E-BST": 4.4035,
        "TE-BST": 4.5833,
        "QO 0.01": 2.0453,
        "QO σ/3": 1.9474,
        "QO σ/2": 2.0205,
    },
    "query_seconds": {
        "E-BST": 4.9123,
        "TE-BST": 4.0746,
        "QO 0.01": 3.0117,
        "QO σ/3": 1.9722,
        "QO σ/2": 1.0292,
    },
}


def differ_in_paper(metric: str, first: str, second: str) -> bool:
    """Return whether the paper finds two observers significantly different.

    - `metric`: a key of `RANKS`.
    - `first`, `second`: names of observers.

    Examples
    --------
    >>> differ_in_paper("observe_seconds", "QO σ/3", "QO σ/2")
    False
    """
    ranks = RANKS[metric]
    return abs(ranks[first] - ranks[second]) > CRITICAL_DIFFERENCE
