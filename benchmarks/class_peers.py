"""Classifiers of other libraries, each with its defaults: `predict_proba` of a row, and `learn`."""

import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from river import compose, ensemble, forest, linear_model, preprocessing, tree

import sapwood
from benchmarks.class_streams import ClassStream, Row

__all__ = [
    "AT_ONCE_ONLY",
    "LONG_SEEDED",
    "OURS",
    "SEEDED",
    "SHORT_ONLY",
    "VFDT",
    "ClassLearner",
    "learners",
    "seeded",
]

Shares = dict[str, float]
OURS = ("Sapwood tree", "Sapwood adaptive tree", "Sapwood forest")
VFDT = "Sapwood VFDT"
AT_ONCE_ONLY = ("river SRP", "MOA SGBT")  # as they are slow
WINDOW, BLOCK = 20_000, 1_000


class ClassLearner(Protocol):
    """What is compared."""

    def predict_proba(self, x: Row) -> Shares:
        """Return the probability of each class; nothing if none is known."""

    def learn(self, x: Row, y: str) -> None:
        """Learn a row."""


class _Sapwood:
    def __init__(self, model: Any) -> None:
        self.predict_proba, self.learn = model.predict_proba_one, model.learn_one


class _River:
    """A model of river; words become numbers where it cannot have words."""

    def __init__(self, model: Any, numbers_only: bool = False) -> None:
        self.model = model
        self.codes: dict[Any, int] | None = {} if numbers_only else None

    def predict_proba(self, x: Row) -> Shares:
        found: Shares = self.model.predict_proba_one(self._row(x))
        total = sum(found.values())
        return {label: p / total for label, p in found.items()} if total > 0 else {}

    def learn(self, x: Row, y: str) -> None:
        self.model.learn_one(self._row(x), y)

    def _row(self, x: Row) -> Row:
        if self.codes is None:
            return x
        return {
            name: self.codes.setdefault((name, value), len(self.codes))
            if isinstance(value, str)
            else value
            for name, value in x.items()
        }


def _softmax() -> Any:
    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    numbers = compose.SelectType((float, int)) | preprocessing.StandardScaler()
    return words + numbers | linear_model.SoftmaxRegression()


class _Majority:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def predict_proba(self, x: Row) -> Shares:
        total = self.counts.total()
        return {label: count / total for label, count in self.counts.items()}

    def learn(self, x: Row, y: str) -> None:
        self.counts[y] += 1


class _NoChange:
    """The class of the last label, by how often that was right."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.right, self.rows = 1.0, 2.0
        self.labels: dict[str, None] = {}  # in the order of their first rows

    def predict_proba(self, x: Row) -> Shares:
        if self.last is None:
            return {}
        share = self.right / self.rows if len(self.labels) > 1 else 1.0
        rest = (1.0 - share) / max(1, len(self.labels) - 1)
        return {label: share if label == self.last else rest for label in self.labels}

    def learn(self, x: Row, y: str) -> None:
        self.right += y == self.last
        self.rows += 1
        self.last = y
        self.labels[y] = None


class _LightGBM:
    """Fitted again on the last rows after each 1,000."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.labels: list[str] = []
        self.codes: dict[Any, int] = {}
        self.model: Any = None

    def _array(self, rows: list[Row]) -> Any:
        return np.array(
            [
                [
                    self.codes.setdefault((name, value), len(self.codes))
                    if isinstance(value, str)
                    else value
                    for name, value in x.items()
                ]
                for x in rows
            ],
            dtype=np.float64,
        )

    def predict_proba(self, x: Row) -> Shares:
        if self.model is None:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.model.predict_proba(self._array([x]))[0]
        return dict(zip(self.model.classes_.tolist(), found.tolist(), strict=True))

    def learn(self, x: Row, y: str) -> None:
        self.rows.append(x)
        self.labels.append(y)
        if len(self.rows) % BLOCK == 0 and len(set(self.labels)) > 1:
            words = [at for at, value in enumerate(x.values()) if isinstance(value, str)]
            make = import_module("lightgbm").LGBMClassifier
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.model = make(verbose=-1, n_jobs=1).fit(
                    self._array(self.rows[-WINDOW:]),
                    np.array(self.labels[-WINDOW:]),
                    categorical_feature=words,
                )


class _Moa:
    """A learner of MOA's through CapyMOA; it is given all classes and categories before."""

    def __init__(self, stream: ClassStream, kind: str, **options: Any) -> None:
        self.labels = stream.classes
        self.places = {label: place for place, label in enumerate(self.labels)}
        first = stream.rows[0]
        self.words = {
            name: {word: at for at, word in enumerate(sorted({x[name] for x in stream.rows}))}
            for name, value in first.items()
            if isinstance(value, str)
        }
        categories = {name: [f"c{i}" for i in own.values()] for name, own in self.words.items()}
        categories["class"] = [f"c{i}" for i in range(len(self.labels))]
        self.schema: Any = import_module("capymoa.stream").Schema.from_custom(
            features=[*first, "class"], target="class", categories=categories
        )
        self.instance: Any = import_module("capymoa.core").LabeledInstance.from_array
        self.model: Any = getattr(import_module("capymoa.classifier"), kind)(self.schema, **options)

    def _instance(self, x: Row, code: int) -> Any:
        values = [
            self.words[name][value] if name in self.words else value for name, value in x.items()
        ]
        return self.instance(self.schema, np.array(values, np.float64), code)

    def predict_proba(self, x: Row) -> Shares:
        found = self.model.predict_proba(self._instance(x, 0))
        if found is None or not np.isfinite(found).all() or found.sum() <= 0:
            return {}
        shares = found / found.sum()
        return dict(zip(self.labels, shares.tolist(), strict=False))

    def learn(self, x: Row, y: str) -> None:
        self.model.train(self._instance(x, self.places[y]))


Make = Callable[[ClassStream], ClassLearner]

LEARNERS: dict[str, Make] = {
    "Sapwood tree": lambda _: _Sapwood(sapwood.HoeffdingTreeClassifier()),
    "Sapwood adaptive tree": lambda _: _Sapwood(sapwood.AdaptiveTreeClassifier(threads=1)),
    "Sapwood forest": lambda _: _Sapwood(sapwood.ForestClassifier(threads=1, seed=1)),
    VFDT: lambda _: _Sapwood(_vfdt()),
    "river HT": lambda _: _River(tree.HoeffdingTreeClassifier()),
    "river EFDT": lambda _: _River(tree.ExtremelyFastDecisionTreeClassifier()),
    "river HAT": lambda _: _River(tree.HoeffdingAdaptiveTreeClassifier(seed=1)),
    "river ARF": lambda _: _River(forest.ARFClassifier(seed=1)),
    "river SRP": lambda _: _River(ensemble.SRPClassifier(n_models=10, seed=1)),
    "river LeveragingBagging": lambda _: _River(
        ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), n_models=10, seed=1)
    ),
    "river AMF": lambda _: _River(forest.AMFClassifier(seed=1), numbers_only=True),
    "river softmax regression": lambda _: _River(_softmax()),
    "LightGBM refitted": lambda _: _LightGBM(),
    "majority class": lambda _: _Majority(),
    "no change": lambda _: _NoChange(),
}
MOA: dict[str, Make] = {
    "MOA HT": lambda s: _Moa(s, "HoeffdingTree"),
    "MOA HAT": lambda s: _Moa(s, "HoeffdingAdaptiveTree"),
    "MOA EFDT": lambda s: _Moa(s, "EFDT"),
    "MOA ARF": lambda s: _Moa(s, "AdaptiveRandomForestClassifier", ensemble_size=10),
    "MOA SRP": lambda s: _Moa(s, "StreamingRandomPatches", ensemble_size=10),
    "MOA LeveragingBagging": lambda s: _Moa(s, "LeveragingBagging", ensemble_size=10),
    "MOA OzaBoost": lambda s: _Moa(s, "OzaBoost", boosting_iterations=10),
    "MOA SGBT": lambda s: _Moa(s, "StreamingGradientBoostedTrees", boosting_iterations=10),
}
SEEDED: dict[str, Callable[[ClassStream, int], ClassLearner]] = {
    OURS[-1]: lambda _, seed: _Sapwood(sapwood.ForestClassifier(threads=1, seed=seed)),
}
"""Learners whose measurements are averaged over further seeds."""
LONG_SEEDED: dict[str, Callable[[ClassStream, int], ClassLearner]] = {
    **SEEDED,
    "river AMF": lambda _, seed: _River(forest.AMFClassifier(seed=seed), numbers_only=True),
    "MOA ARF": lambda s, seed: _Moa(
        s, "AdaptiveRandomForestClassifier", ensemble_size=10, random_seed=seed
    ),
    "MOA SRP": lambda s, seed: _Moa(
        s, "StreamingRandomPatches", ensemble_size=10, random_seed=seed
    ),
}
"""The same on the longer streams: the best of other libraries too."""
SEEDS = (2, 3)
SHORT_ONLY = ("river SRP", "river LeveragingBagging", "MOA SGBT")
"""Learners that need a millisecond or more for a row, so that longer streams take hours."""


def _vfdt() -> sapwood.HoeffdingTreeClassifier:
    """Return a tree with the settings of VFDT that those of river and MOA have by default."""
    return sapwood.HoeffdingTreeClassifier(
        leaf="naive_bayes_adaptive", merit="information_gain", delta=1e-7, min_share=0.01
    )


def seeded(name: str, stream: ClassStream, *, is_long: bool = False) -> list[ClassLearner]:
    """Return a learner with each of its further seeds; none if one seed is measured.

    Parameters
    ----------
    name : str
        Of the learner.
    stream : ClassStream
        The rows.
    is_long : bool
        Whether they are those of the longer streams.
    """
    found = LONG_SEEDED if is_long else SEEDED
    return [found[name](stream, seed) for seed in SEEDS] if name in found else []


def learners() -> dict[str, Make]:
    """Return the learners that are installed."""
    found = {k: v for k, v in LEARNERS.items() if "LightGBM" not in k or find_spec("lightgbm")}
    return {**found, **(MOA if find_spec("capymoa") else {})}
