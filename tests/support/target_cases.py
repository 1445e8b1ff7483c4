"""Streams of several targets."""

import numpy as np

NAMES = ("a", "b", "c")


def columns_of(rng, rows):
    """Four features, and three targets of which no two need the same splits; c is missing never."""
    X = rng.random((rows, 4))
    a = np.where(X[:, 0] < 0.5, 10 * X[:, 1], -10 * X[:, 1]) + 0.3 * rng.normal(size=rows)
    b = 100 + 5 * X[:, 2] + 20 * (X[:, 3] > 0.6) + rng.normal(size=rows)
    c = (X[:, 1] > 0.3) - 0.2 * a + 0.1 * X[:, 3]
    return X, {"a": a, "b": b, "c": c}


def stream_of(kind, rows):
    """Rows of a dict of features, a dict of targets, and a weight.

    Of a kind: plain; with gaps in features and targets; with categories, and gaps; with weights;
    with a target that comes late; with more than 63 categories, most of them rare; with whole numbers; or
    with more than 63 categories that repeat, gaps and weights.
    """
    kinds = ["plain", "gaps", "categories", "weights", "late", "many", "whole", "encoded"]
    rng = np.random.default_rng(kinds.index(kind))
    X, y = columns_of(rng, rows)
    if kind == "whole":
        X = np.round(20 * X) / 20
        X[:, 0] *= 1000
    labels = rng.choice(list("pqrst"), rows).tolist()
    numbers = {"many": 90, "encoded": 15}.get(kind)
    labels = [f"{label}{at % numbers if numbers else ''}" for at, label in enumerate(labels)]
    features = [dict(zip(("x0", "x1", "x2", "x3"), row, strict=True)) for row in X.tolist()]
    targets = [{name: float(column[at]) for name, column in y.items()} for at in range(rows)]
    weights = np.ones(rows)
    if kind in ("categories", "many", "encoded"):
        for at, label in enumerate(labels):
            features[at]["k"] = label
            strength = 4 if kind == "encoded" else 1
            targets[at]["b"] += 8 * strength * (label[0] == "p") - 5 * (label[0] == "q")
            targets[at]["a"] += 6 * strength * (label[0] == "t")
    if kind in ("gaps", "categories", "encoded"):
        for x, own in zip(features, targets, strict=True):
            for name in list(x):
                if rng.random() < 0.1:
                    x[name] = None
            for name in ("a", "b"):
                if rng.random() < 0.25:
                    own[name] = None
    if kind in ("weights", "encoded"):
        weights = rng.uniform(0.2, 4, rows)
    if kind == "late":
        for own in targets[: rows // 2]:
            own["b"] = None
    return list(zip(features, targets, weights.tolist(), strict=True))


def arrays_of(stream, names=NAMES):
    """The same as a matrix of features, one of targets, and weights; without categories."""
    number = [name for name in stream[0][0] if name != "k"]
    X = np.array([[x[name] for name in number] for x, _, _ in stream], dtype=float)
    Y = np.array([[y[name] for name in names] for _, y, _ in stream], dtype=float)
    return X, Y, np.array([w for _, _, w in stream])
