"""Random programs over all models and stages, compared with the same rows one by one with ids.

A program learns and predicts rows by batches and one by one, with labels that are delayed, rows
that are equal, features and categories that appear later, is saved, loaded and copied on its way,
read by another thread while it learns, and interrupted. The reference gets the same rows, each
alone, delayed ones with an id, and is never saved. Both have to predict the same to the last bit. A
program of a number is the same in every run, so that it can be tried alone::

    python tests/support/random_programs.py FIRST LAST
"""

import sys
import threading

import numpy as np

import sapwood
from hybrid_cases import MeanEstimator
from interrupted import interrupted_at
from sapwood import CorrectedRegressor, MonitoredRegressor
from sapwood.intervals import IntervalRegressor
from sapwood.lags import LaggedModel, Lags
from sapwood.stages.stage import rows_learned

STEPS = 12


def corrected(model):
    """The error-correction layer around a model like this one that has none."""
    if isinstance(model, sapwood.HybridRegressor):
        return CorrectedRegressor(model)
    return CorrectedRegressor(type(model)(**{**model.parameters, "track": None}))


def hybrid():
    online = sapwood.ForestRegressor(members=2, threads=1, grace_period=30)
    return sapwood.HybridRegressor(online, MeanEstimator(), min_rows=30, background=False)


MODELS = {
    "tree": lambda: sapwood.HoeffdingTreeRegressor(grace_period=30),
    "tree of little memory": lambda: sapwood.HoeffdingTreeRegressor(
        grace_period=30, max_bytes=400_000
    ),
    "adaptive": lambda: sapwood.AdaptiveTreeRegressor(grace_period=30, threads=1),
    "forest": lambda: sapwood.ForestRegressor(members=2, threads=1, grace_period=30),
    "targets": lambda: sapwood.HoeffdingTreeRegressor(grace_period=30),
    "hybrid": hybrid,
    "tree classifier": lambda: sapwood.HoeffdingTreeClassifier(grace_period=30),
    "forest classifier": lambda: sapwood.ForestClassifier(members=2),
}
STAGES = {
    "alone": lambda model, lags: model,
    "lags": LaggedModel,
    "interval": lambda model, lags: IntervalRegressor(model),
    "lags(interval)": lambda model, lags: LaggedModel(IntervalRegressor(model), lags),
    "interval(lags)": lambda model, lags: IntervalRegressor(LaggedModel(model, lags)),
    "corrected": lambda model, lags: corrected(model),
    "lags(corrected)": lambda model, lags: LaggedModel(corrected(model), lags),
    "monitored(interval)": lambda model, lags: MonitoredRegressor(IntervalRegressor(model)),
}
CASES = [
    (kind, stage)
    for kind in MODELS
    for stage in STAGES
    if stage == "alone" or "classifier" not in kind
]


class Rows:
    """A stream whose rows are often equal, and bring new features and categories."""

    def __init__(self, rng, kind):
        self._rng, self._kind, self._count = rng, kind, 0
        self._may_lack = kind != "hybrid"  # whose batches have all features of their rows

    def next(self):
        rng = self._rng
        self._count += 1
        x = {"a": float(rng.integers(0, 4))}
        if not self._may_lack or rng.random() < 0.7:
            x["b"] = float(rng.integers(0, 3))
        if self._count > 60 or not self._may_lack:
            x["c"] = f"label {rng.integers(0, 3 + self._count // 40)}"
        y = x["a"] * 2 + float(rng.normal()) + 0.05 * self._count
        if "classifier" in self._kind:
            return x, ("low", "high", "none")[int(y > 5) + int(y > 20)]
        if self._kind == "targets":
            return x, {"u": y, "v": -y if rng.random() < 0.8 else float("nan")}
        return x, y


def made(kind, stage):
    """A model under its stages, empty."""
    target = ["u", "v"] if kind == "targets" else "y"
    return STAGES[stage](MODELS[kind](), Lags([1, 2], means=3, target=target, by="b"))


def several(y):
    """Labels of rows as a batch takes them."""
    if isinstance(y[0], dict):
        return {name: [each[name] for each in y] for name in y[0]}
    return y


def plain(prediction):
    """A prediction as something to compare; of several targets, in the order of their names."""
    if isinstance(prediction, dict):
        return tuple(prediction[name] for name in sorted(prediction, key=str))
    return prediction


def listed(predictions):
    """The predictions of a batch, one by one."""
    if isinstance(predictions, dict):
        return [*zip(*(predictions[name].tolist() for name in sorted(predictions)), strict=True)]
    found = predictions.tolist()
    return [tuple(each) if isinstance(each, list) else each for each in found]


class Program:
    """A random program, which returns its predictions; and its reference."""

    def __init__(self, number):
        self.kind, self.stage = CASES[number % len(CASES)]
        self._rng = np.random.default_rng([29, number])
        self._rows = Rows(self._rng, self.kind)
        self.model, self.reference = (made(self.kind, self.stage) for _ in range(2))
        self.found, self.expected = [], []
        self._waiting, self._number = [], 0

    def run(self):
        """Run it; return the first step after which predictions differ, or None."""
        self._learn_many(40)
        for step in range(STEPS):
            way = self._rng.choice(
                [
                    *("learn", "learn_many", "batch", "delayed", "labels", "reopen", "threads"),
                    "break",
                ]
            )
            getattr(self, f"_{way}")(int(self._rng.integers(1, 12)))
            if self.found != self.expected:
                return step, str(way)
        self._labels(len(self._waiting))
        probe = self._rows.next()[0]
        self.found.append(plain(self.model.predict_one(probe, record=False)))
        self.expected.append(plain(self.reference.predict_one(probe, record=False)))
        return None if self.found == self.expected else (STEPS, "the end")

    # -- ways; the reference gets each row alone, with an id --------------------------------------

    def _next_id(self):
        self._number += 1
        return self._number

    def _pair(self, x, y):
        """Let the reference predict a row and learn it."""
        self.expected.append(plain(self.reference.predict_one(x)))
        self.reference.learn_one(x, y)

    def _learn(self, count):
        for _ in range(count):
            x, y = self._rows.next()
            self.found.append(plain(self.model.predict_one(x)))
            self.model.learn_one(x, y)
            self._pair(x, y)

    def _learn_many(self, count):
        rows, y = zip(*(self._rows.next() for _ in range(count)), strict=True)
        self.model.learn_many(list(rows), several(y))
        for x, label in zip(rows, y, strict=True):
            self.reference.learn_one(x, label)

    def _batch(self, count):
        rows, y = zip(*(self._rows.next() for _ in range(count)), strict=True)
        self.found += listed(self.model.predict_learn_many(list(rows), several(y)))
        for x, label in zip(rows, y, strict=True):
            self._pair(x, label)

    def _delayed(self, count):
        """Predict rows whose labels come later, by a batch of ids or one by one."""
        rows = [(*self._rows.next(), self._next_id()) for _ in range(count)]
        ids = [id for _, _, id in rows]
        if self._rng.random() < 0.5:
            self.found += listed(self.model.predict_many([x for x, _, _ in rows], ids=ids))
        else:
            self.found += [plain(self.model.predict_one(x, id=id)) for x, _, id in rows]
        self.expected += [plain(self.reference.predict_one(x, id=id)) for x, _, id in rows]
        self._waiting += rows

    def _labels(self, count):
        """Let some labels come, in any order."""
        chosen = []
        for _ in range(min(count, len(self._waiting))):
            chosen.append(self._waiting.pop(int(self._rng.integers(len(self._waiting)))))
        if not chosen:
            return
        rows, y, ids = zip(*chosen, strict=True)
        if self._rng.random() < 0.5:
            self.model.learn_many(list(rows), several(y), ids=list(ids))
        else:
            for x, label, id in chosen:
                self.model.learn_one(x, label, id=id)
        for x, label, id in chosen:
            self.reference.learn_one(x, label, id=id)

    def _reopen(self, count):
        """Go on with a copy, or with what was saved."""
        if count % 2:
            self.model = self.model.copy()
            return
        self.model = sapwood.model.from_bytes(self.model.to_bytes())
        if self.kind == "hybrid":
            self.model.attach(MeanEstimator())

    def _break(self, count):
        """Interrupt learning at some line of Python: the row is learned by all stages, or none."""
        x, y = self._rows.next()
        before = rows_learned(self.model)
        interrupted_at(int(self._rng.integers(1, 80)), lambda: self.model.learn_one(x, y))
        self.model.predict_one(x, record=False)  # which finishes what was left undone
        if rows_learned(self.model) == before:
            self.model.learn_one(x, y)
        self.reference.learn_one(x, y)

    def _threads(self, count):
        """Read the model by another thread while it learns."""
        done, failures = threading.Event(), []

        def read():
            while not done.is_set():
                try:
                    self.model.predict_many([{"a": 1.0, "b": 1.0}], record=False)
                    assert self.model.nbytes > 0
                except Exception as error:
                    failures.append(error)
                    return

        reader = threading.Thread(target=read)
        reader.start()
        try:
            self._learn(count)
        finally:
            done.set()
            reader.join()
        assert not failures, failures


def differences(first, last):
    """The programs whose predictions differ from those of their references, and where."""
    found = []
    for number in range(first, last):
        program = Program(number)
        place = program.run()
        if place is not None:
            found.append((number, program.kind, program.stage, place))
    return found


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    for number in range(first, last):
        try:
            for each in differences(number, number + 1):
                print(*each, flush=True)
        except Exception as error:
            print(number, *CASES[number % len(CASES)], f"{error!r}"[:300], flush=True)
    print(f"{last - first} programs")
