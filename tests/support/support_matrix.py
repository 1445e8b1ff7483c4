"""Which features each model supports, tried one by one.

``python tests/support/support_matrix.py > docs/reference/support.md`` writes the page of the
documentation, which `tests/unit/package/test_support_matrix.py` compares with what it finds.
"""

import re
from functools import cache

import numpy as np

import sapwood
from sapwood.classify import LaggedClassifier
from sapwood.drift import Monitor
from sapwood.evaluate import evaluate_classes, prequential
from sapwood.export import to_onnx, to_shap, to_sklearn, to_treelite
from sapwood.lags import LaggedModel, Lags
from sapwood.merge import take_snapshot
from sapwood.merge.members import parted

KINDS = {
    "tree": (sapwood.HoeffdingTreeRegressor, sapwood.HoeffdingTreeClassifier),
    "forest": (sapwood.ForestRegressor, sapwood.ForestClassifier),
    "adaptive": (sapwood.AdaptiveTreeRegressor, sapwood.AdaptiveTreeClassifier),
}
TASKS = ("one target", "several targets", "two classes")
YES, NO, NO_EFFECT = "yes", "no", "no effect"
REJECTED = (ValueError, TypeError, AttributeError, NotImplementedError)
LARGE, FEW = 6000, 800


class Case:
    """A model and a task of the matrix; `made` makes the model, `y` the targets of a column."""

    def __init__(self, kind, task):
        self.kind, self.task = kind, task

    def made(self, **parameters):
        return KINDS[self.kind][self.task == "two classes"](**parameters)

    def y(self, column):
        """Return a column as the targets of the task; the second has another sign and scale."""
        if self.task == "two classes":
            return np.where(column > np.median(column), "high", "low")
        return column if self.task == "one target" else {"a": column, "b": 7.0 - 3.0 * column}

    def learned(self, rows=FEW, seed=1, **parameters):
        model, (X, column) = self.made(**parameters), stream(rows, seed)
        model.learn_many(X, self.y(column))
        return model

    def score(self, model, X, column):
        """Return the explained share of the variance of the first target, or of the classes."""
        found = model.predict_many(X)
        if self.task == "two classes":
            wrong = np.mean(found != self.y(column))
            return 1.0 - 2.0 * wrong
        if self.task == "several targets":
            found = found["a"] if isinstance(found, dict) else found[:, 0]
        return 1.0 - np.mean((found - column) ** 2) / np.var(column)


@cache
def stream(rows, seed):
    rng = np.random.default_rng(seed)
    X = {"u": rng.normal(size=rows), "v": rng.random(rows), "k": rng.choice(list("pqr"), rows)}
    y = np.where(X["u"] > 0, 3.0, 0.0) + 2.0 * (X["k"] == "p") + X["v"]
    return X, y + 0.3 * rng.normal(size=rows)


def part_of(y, rows):
    """Return some rows of the targets of a task."""
    return {name: own[rows] for name, own in y.items()} if isinstance(y, dict) else y[rows]


# -- what is tried: a function returns whether a feature has its effect, or raises -----------------


def files(case):
    model, (X, _) = case.learned(), stream(FEW, 1)
    again = type(model).from_bytes(model.to_bytes())
    return repr(again.predict_many(X)) == repr(model.predict_many(X))


def missing_targets(case):
    X, column = stream(FEW, 1)
    y = case.y(column)
    if case.task != "several targets":
        raise ValueError("there is one target, and a row without it is not learned")
    y["b"] = np.where(np.arange(FEW) % 3 == 0, np.nan, y["b"])
    model = case.made()
    model.learn_many(X, y)
    return case.score(model, X, column) > 0.5


def delayed_labels(case):
    model, (X, column) = case.learned(), stream(FEW, 1)
    y = case.y(column)
    x = {name: values[0] for name, values in X.items()}
    first = {name: values[0] for name, values in y.items()} if isinstance(y, dict) else y[0]
    model.predict_one(x, id="row 5")
    model.learn_one(x, first, id="row 5")
    return True


def intervals(case):
    model, (X, column) = sapwood.IntervalRegressor(case.made()), stream(FEW, 1)
    model.learn_many(X, case.y(column))
    return model.predict_interval_one({name: own[0] for name, own in X.items()}) is not None


def prediction_sets(case):
    model, (X, column) = case.learned(), stream(FEW, 1)
    sets = model.predict_set_many(X, 0.9)
    return np.mean(sets[np.arange(FEW), [model.classes.index(y) for y in case.y(column)]]) > 0.85


def lags(case):
    names = ["a", "b"] if case.task == "several targets" else "y"
    around = LaggedClassifier if case.task == "two classes" else LaggedModel
    model, (X, column) = around(case.made(), Lags(1, target=names)), stream(100, 1)
    model.learn_many(X, case.y(column))
    return True


def monitor(case):
    X, column = stream(FEW, 1)
    if case.task == "two classes":
        return (
            evaluate_classes(case.made(), X, case.y(column), monitor=Monitor()).drift_events
            is not None
        )
    return prequential(case.made(), X, case.y(column), monitor=Monitor()).drift_events is not None


def trial_splits(case):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2 * LARGE, 6))
    column = np.sign(X[:, 0] * X[:, 1]) + 1e-3 * rng.normal(size=2 * LARGE)
    model = case.made()
    model.learn_many(X[:-2000], part_of(case.y(column), slice(0, -2000)))
    return case.score(model, X[-2000:], column[-2000:]) > 0.8


def many_categories(case):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 300, LARGE)
    X = {"c": np.array([f"c{code}" for code in codes]), "z": rng.normal(size=LARGE)}
    column = rng.normal(size=300)[codes] * 3
    model = case.made()
    model.learn_many(X, case.y(column))
    return case.score(model, X, column) > 0.7


def units(case):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2 * LARGE, 3)) + 5
    column = X[:, 0] * 2 + np.sin(3 * X[:, 1]) * 3 + 0.1 * rng.normal(size=2 * LARGE)
    X[LARGE:, 0] *= 1000
    y, model, found = case.y(column), case.made(), []
    for start in range(0, 2 * LARGE, 100):
        part = slice(start, start + 100)
        if LARGE + 500 <= start < LARGE + 2500:
            found.append(case.score(model, X[part], column[part]))
        model.learn_many(X[part], part_of(y, part))
    return np.mean(found) > (0.7 if case.task == "two classes" else 0.94)


def observer(made):
    def tried(case):
        return case.learned(observer=made()).n_leaves > 0

    return tried


def no_splits(case):
    return "u" in tuple(case.learned(no_splits=["u"]).parameters["no_splits"])


def later_no_splits(case):
    model = case.learned()
    if not hasattr(model, "no_splits"):
        raise AttributeError("no_splits")
    model.no_splits = ["u"]
    return type(model).from_bytes(model.to_bytes()).no_splits == ("u",)


def anytime(case):
    return case.learned(split_bound="anytime").n_leaves > 0


def memory(case):
    return case.learned(max_bytes=2_000_000).nbytes <= 2_000_000


def prune(case):
    model = case.learned(3000)
    before = model.n_leaves
    model.prune(0, **({"member": 0} if case.kind == "forest" else {}))
    return model.n_leaves == 1 if case.kind != "forest" else model.n_leaves < before


def merge(case):
    return case.learned(seed=1).merge(case.learned(seed=2)).summary.rows == 2 * FEW


def deltas(case):
    return bool(take_snapshot(case.learned(3000)))


def workers(case):
    if case.kind != "forest":
        raise TypeError("a forest is expected, whose members are shared out")
    return len(parted(case.learned(), 2)) == 2


def export(function):
    def tried(case):
        return function(case.learned(leaf="mean", track=None)) is not None

    return tried


def onnx(case):
    return to_onnx(case.learned()) is not None


def of_target(case):
    model = case.learned()
    return model.of_target("a").n_leaves > 0


def explained(case):
    X, _ = stream(FEW, 1)
    return case.learned().explain({name: own[0] for name, own in X.items()}) is not None


def rules(case):
    model = case.learned()
    return (model.to_rules("a") if case.task == "several targets" else model.to_rules()) is not None


def anomalies(case):
    X, _ = stream(FEW, 1)
    return (case.learned().anomaly_score_many(X) > 0).any()


def importances(case):
    return len(case.learned().feature_importances) == 3


FEATURES = {
    "files, copies": files,
    "rows with some targets missing": missing_targets,
    "delayed labels (`id=`)": delayed_labels,
    "prediction intervals (`IntervalRegressor`)": intervals,
    "prediction sets (`predict_set_one`)": prediction_sets,
    "lag features (`LaggedModel`, `LaggedClassifier`)": lags,
    "drift alerts (`prequential` or `evaluate_classes` with `monitor=`)": monitor,
    "trial splits for feature interactions": trial_splits,
    "more than 63 categories of a feature": many_categories,
    "changes of units are followed": units,
    "`observer=EBSTObserver()`": observer(sapwood.EBSTObserver),
    "`observer=TEBSTObserver()`": observer(sapwood.TEBSTObserver),
    '`split_bound="anytime"`': anytime,
    "`max_bytes`": memory,
    "`no_splits`": no_splits,
    "`no_splits` set later": later_no_splits,
    "`prune`": prune,
    "`merge`": merge,
    "workers: deltas of a tree": deltas,
    "workers: members of a forest": workers,
    "export to ONNX": onnx,
    "export to SHAP": export(to_shap),
    "export to treelite": export(to_treelite),
    "export to scikit-learn": export(to_sklearn),
    "`of_target`": of_target,
    "`explain`": explained,
    "`to_rules`": rules,
    "`anomaly_score_many`": anomalies,
    "`feature_importances`": importances,
}


def tried(feature, kind, task):
    """Return whether a model supports a feature, and the reason if it does not."""
    try:
        works = FEATURES[feature](Case(kind, task))
    except AttributeError:
        return NO, "there is no such method"
    except REJECTED as error:
        return NO, shortened(str(error).splitlines()[0])
    return (YES, "") if works else (NO_EFFECT, "accepted, without effect")


def shortened(message):
    """Return a message without the figures of a model, which may change."""
    if "unexpected keyword argument" in message:
        return "there is no such parameter"
    return re.sub(r"^\w+ = <.*?>: ", "", message)


@cache
def matrix():
    """Return what each model supports, by feature, kind and task."""
    return {
        (feature, kind, task): tried(feature, kind, task)
        for feature in FEATURES
        for kind in KINDS
        for task in TASKS
    }


HEAD = """# What is supported

Each cell was tried: `python tests/support/support_matrix.py > docs/reference/support.md` writes this
page, and a test compares it with the models. *No effect* means that a model accepts the feature and
does not profit from it. The reasons are the messages of errors.

On the command line, `evaluate`, `train` and `compare` read several targets from files, `evaluate` and
`train` also from topics of Kafka, with `--monitor`, `--interval`, `--delay` and `--lags`; `train` with
`--workers`, too. `predict --to` is for one target. Of classes, `evaluate`, `train` and `compare` read
files, with `--checkpoint`, `--monitor`, `--events`, `--delay` in rows, `--lags`, `--lags-of`,
`--means-of`, `--by`, `--id`, `--time`, and `--interval` for prediction sets. `train --workers` makes one
forest of the classifiers of all workers. `--means`, `--horizon` and `--labels` are for numbers.

"tree" is `HoeffdingTreeRegressor` or `HoeffdingTreeClassifier`, "forest" is `ForestRegressor` or
`ForestClassifier`, "adaptive" is `AdaptiveTreeRegressor` or `AdaptiveTreeClassifier`.
"""


def page():
    """Return the page of the documentation."""
    found = matrix()
    columns = [(kind, task) for task in TASKS for kind in KINDS]
    lines = [HEAD]
    for task in TASKS:
        lines += [f"## {task.capitalize()}", ""]
        lines += ["| feature | tree | forest | adaptive |", "| --- | --- | --- | --- |"]
        for feature in FEATURES:
            cells = [found[feature, kind, task][0] for kind in KINDS]
            lines.append(f"| {feature} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## Reasons", ""]
    for feature in FEATURES:
        reasons = {}
        for kind, task in columns:
            answer, reason = found[feature, kind, task]
            if answer != YES:
                reasons.setdefault(reason, []).append(f"{kind} of {task}")
        for reason, where in reasons.items():
            lines.append(f"- {feature}, {', '.join(where)}: {reason}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
