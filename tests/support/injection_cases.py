"""Actions that change a subject, and checks of its state after they were interrupted."""

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sapwood
from sapwood import (
    AdaptiveTreeRegressor,
    EBSTObserver,
    ForestClassifier,
    ForestRegressor,
    HoeffdingTreeClassifier,
    HoeffdingTreeRegressor,
    QuantizerObserver,
    TEBSTObserver,
    model,
)
from sapwood.evaluate import Prequential, prequential
from sapwood.evaluate.checkpoint import CheckpointFile
from sapwood.merge import ShardLearner, apply, take_snapshot
from sapwood.streams.memory import as_stream

Row = tuple[dict[Any, Any], float]
Learn = Callable[[HoeffdingTreeRegressor, list[Row]], Any]


class BrokenError(Exception):
    """A subject is neither in the state before the action nor in the state after it."""


class Case:
    """An action on a subject; used as a context, in which there is what it needs."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def start(self):
        """Return a subject as it is before."""
        raise NotImplementedError

    def act(self, subject):
        """Change it."""
        raise NotImplementedError

    def check(self, subject):
        """Return how the subject was left, or raise BrokenError."""
        raise NotImplementedError

    def use_regardless(self, subject):
        """Use a subject that was found broken, as a caller would who does not know it."""


# -- ways to learn rows ---------------------------------------------------------------------------


def columns_of(rows):
    """Rows as columns by name, and their targets."""
    names = dict.fromkeys(name for x, _ in rows for name in x)
    return {name: [x.get(name) for x, _ in rows] for name in names}, [y for _, y in rows]


def one_by_one(tree, rows):
    for x, y in rows:
        tree.learn_one(x, y)


def by_mapping(tree, rows):
    tree.learn_many(*columns_of(rows))


def by_array(tree, rows):
    columns, y = columns_of(rows)
    tree.learn_many(np.array([*columns.values()], dtype=float).T, np.array(y))


def by_pandas(tree, rows):
    import pandas

    columns, y = columns_of(rows)
    tree.learn_many(pandas.DataFrame(columns), y)


def by_arrow(tree, rows):
    import pyarrow

    columns, y = columns_of(rows)
    tree.learn_many(pyarrow.table(columns), y)


def predicting(tree, rows):
    tree.predict_learn_many(*columns_of(rows))


def by_evaluation(tree, rows):
    columns, y = columns_of(rows)
    prequential(tree, (columns, y))


# -- trees ----------------------------------------------------------------------------------------


class TreeCase(Case):
    """A tree that learns a batch.

    After k rows it has to be what it is after learning these alone. Only a decision that the last
    of them calls for may be outstanding: then the tree goes on, loaded or not, to the same bits.

    Parameters
    ----------
    tree : HoeffdingTreeRegressor
        The tree as it is before.
    rows : list of rows
        The batch; what is new in it is new in its first row.
    more : list of rows
        What is learned afterwards.
    learn : callable
        Lets a tree learn rows.
    """

    def __init__(
        self, tree: HoeffdingTreeRegressor, rows: list[Row], more: list[Row], learn: Learn
    ):
        self.before, self.rows, self.more, self.learn = tree.to_bytes(), rows, more, learn
        self.rows_before = tree.summary.rows
        reference = self.start()
        self.states = {self.before: 0}
        for number, row in enumerate(rows, 1):
            learn(reference, [row])
            self.states[reference.to_bytes()] = number
        whole = self.start()
        self.act(whole)
        assert self.states[whole.to_bytes()] == len(self.states) - 1 == len(rows)
        one_by_one(whole, more)
        self.end = whole.to_bytes()

    def start(self):
        return model.from_bytes(self.before)

    def act(self, tree):
        self.learn(tree, self.rows)

    def check(self, tree):
        data = tree.to_bytes()
        learned = self.states.get(data)
        is_clean = learned is not None
        if learned is None:
            learned = tree.summary.rows - self.rows_before
            if learned == 0:
                raise BrokenError("changed, though no row was learned")
        _use(tree, self.rows)
        if tree.to_bytes() != data:
            raise BrokenError("changed by looking at it")
        restored = model.from_bytes(data)
        if restored.to_bytes() != data:
            raise BrokenError("changed by loading it")
        for each in (tree, restored):
            self._go_on(each, learned)
            if each.to_bytes() != self.end:
                raise BrokenError(
                    f"goes on to another end: after {learned} rows, clean: {is_clean}"
                )
        if not is_clean:
            return "decision outstanding"
        return {0: "before", len(self.rows): "after"}.get(learned, "between rows")

    def use_regardless(self, tree):
        tree.predict_many(columns_of(self.rows)[0])
        self._go_on(tree, 0)

    def _go_on(self, tree, learned):
        if learned < len(self.rows):
            self.learn(tree, self.rows[learned:])
        one_by_one(tree, self.more)


def _unasked(tree, rows):
    """Predictions one by one and together that leave no notes; of an ensemble, those of a copy."""
    columns, _ = columns_of(rows)
    if not isinstance(tree, HoeffdingTreeRegressor):
        copy = tree.copy()
        predictions, together = [copy.predict_one(x) for x, _ in rows], copy.predict_many(columns)
        if tree.targets:
            predictions = [list(prediction.values()) for prediction in predictions]
            together = np.column_stack(list(together.values()))
        return predictions, together
    predictions = [tree.predict_region_one(x, record=False)[0] for x, _ in rows]
    if tree.targets:
        predictions = [list(prediction.values()) for prediction in predictions]
    return predictions, tree._predict_plan(tree._features.read(columns, learn=False), asked=False)


def _use(tree, rows):
    """Do with a tree all that does not change it."""
    predictions, together = _unasked(tree, rows)
    if not np.array_equal(predictions, together) or not np.isfinite(together).all():
        raise BrokenError(
            f"predicts {predictions[:2]} one by one, and {together.tolist()[:2]} together"
        )
    tree.to_text()
    _ = tree.nbytes


def rows_of(count, seed, *, numbers=("a", "b"), categories=(), labels=("red", "blue", "green")):
    """Rows whose numbers and categories matter, so that trees grow quickly."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        x = {name: float(rng.normal()) for name in numbers}
        x |= {name: str(rng.choice(labels)) for name in categories}
        y = 0.1 * float(rng.normal())
        for place, name in enumerate(numbers):
            y += (4.0 if x[name] > 0 else -3.0) / (1 + place)
        for name in categories:
            y += {"red": 5.0, "blue": -5.0}.get(x[name], 1.0)
        rows.append((x, y))
    return rows


FEW = 63  # labels of a category of few
QUICK = {"grace_period": 20, "delta": 0.5, "tau": 0.5}
FOREST = partial(ForestRegressor, members=3)
TREE_OF_CLASSES = HoeffdingTreeClassifier
FOREST_OF_CLASSES = partial(ForestClassifier, members=2, threads=1)
KNOWN_LABELS = ["class 0", "class 1", "class 1"]
ADAPTIVE = AdaptiveTreeRegressor


def grown(rows=300, *, numbers=("a", "b"), categories=(), seed=1, **parameters):
    """A tree that has learned some rows, and has a few leaves."""
    tree = HoeffdingTreeRegressor(**QUICK, **parameters)
    one_by_one(tree, rows_of(rows, seed, numbers=numbers, categories=categories))
    return tree


def new_features(learn, **parameters):
    """Two numbers, a category and a column without values come to a tree with leaves."""
    tree = grown(categories=("c",), **parameters)
    assert tree.n_leaves > 3
    named = {"numbers": ("a", "b", "d", "e"), "categories": ("c", "f")}
    rows = [({**x, "g": None}, y) for x, y in rows_of(5, 2, labels=("red",), **named)]
    return TreeCase(tree, rows, rows_of(30, 3, **named), learn)


def first_features(learn, numbers=("a", "b", "c")):
    """The first rows of all."""
    tree = HoeffdingTreeRegressor(**QUICK)
    rows = rows_of(5, 2, numbers=numbers)
    return TreeCase(tree, rows, rows_of(30, 3, numbers=numbers), learn)


def new_categories(learn, **parameters):
    """New labels of two features."""
    names = ("c", "d")
    tree = grown(categories=names, **parameters)
    rows = rows_of(5, 2, categories=names)
    rows = [({**x, "c": "new", "d": "newer"}, y) for x, y in rows]
    return TreeCase(tree, rows, rows_of(30, 3, categories=names), learn)


def many_categories(learn, labels=FEW, **parameters):
    """A category becomes one of many in the middle of a batch, or its levels need more places."""
    tree = HoeffdingTreeRegressor(**QUICK, **parameters)
    one_by_one(tree, [({**x, "c": f"l{at % 40}"}, y) for at, (x, y) in enumerate(rows_of(200, 1))])
    early = [({**x, "c": f"l{40 + at}"}, y) for at, (x, y) in enumerate(rows_of(labels - 41, 2))]
    one_by_one(tree, early)
    rows = [({**x, "c": f"l{labels - 1 + at}"}, y) for at, (x, y) in enumerate(rows_of(5, 3))]
    return TreeCase(tree, rows, [({**x, "c": "l50"}, y) for x, y in rows_of(30, 4)], learn)


def on_trial(learn, known):
    """A split is tried after 320 rows, and made after 340, as two features show something only
    together; so many rows are known."""
    rng = np.random.default_rng(1)
    X, noise = rng.uniform(-1, 1, (1500, 2)).tolist(), rng.normal(size=1500).tolist()
    product = [
        ({"a": a, "b": b}, 3.0 * np.sign(a * b) + 0.1 * each)
        for (a, b), each in zip(X, noise, strict=True)
    ]
    tree = HoeffdingTreeRegressor(**QUICK)
    one_by_one(tree, product[:known])
    return TreeCase(tree, product[known : known + 5], product[known + 5 : known + 45], learn)


def unknown_kinds(learn, **parameters):
    """Columns without a value so far turn out to be a number and a category."""
    tree = HoeffdingTreeRegressor(**QUICK, **parameters)
    one_by_one(tree, [({**x, "n": None, "c": None}, y) for x, y in rows_of(200, 1)])
    named = {"numbers": ("a", "b", "n"), "categories": ("c",)}
    rows = rows_of(5, 2, labels=("red",), **named)
    return TreeCase(tree, rows, rows_of(30, 3, **named), learn)


def at_event(rows, happens, learn=by_mapping, before=2, known=(), **parameters):
    """A batch in the middle of which something happens to a tree, that may know rows before."""
    tree = HoeffdingTreeRegressor(**parameters)
    by_mapping(tree, [*known])
    copies = []
    for place, row in enumerate(rows):
        earlier = tree.summary
        copies = [*copies[-before:], tree.to_bytes()]
        one_by_one(tree, [row])
        if len(copies) > before and happens(earlier, tree.summary):
            start = HoeffdingTreeRegressor.from_bytes(copies[0])
            batch = rows[place - before : place + 3]
            return TreeCase(start, batch, rows[place + 3 : place + 60], learn)
    raise AssertionError("nothing has happened")


def split(learn=by_mapping, leaves=4, categories=(), **parameters):
    """A leaf of a tree with some is split."""
    rows = rows_of(2000, 5, categories=categories)
    return at_event(
        rows, lambda old, new: leaves < new.leaves > old.leaves, learn, **QUICK, **parameters
    )


def longer_tables():
    """A split for which the tables become longer."""
    rows = rows_of(6000, 5, numbers=("a", "b", "c"))
    return at_event(rows, lambda old, new: old.nodes <= 16 < new.nodes, **QUICK)


def review(learn=by_mapping, **parameters):
    """The reviews of a leaf that knows little."""
    tree = HoeffdingTreeRegressor(**parameters)
    rows = rows_of(80, 5, categories=("c",))
    one_by_one(tree, rows[:6])
    return TreeCase(tree, rows[6:18], rows[18:], learn)


def ranking(learn=by_mapping, rows=6000, **parameters):
    """Leaves stop watching, as memory is full."""
    made = rows_of(rows, 7, numbers=("a", "b", "c"))
    return at_event(
        made, lambda old, new: new.watching < old.watching, learn, **QUICK, **parameters
    )


def other_units(column, learn=by_mapping):
    """A feature, or y, comes in other units, and with a row in the midst the tree is sure of it."""
    rows, later = rows_of(2_500, 7), rows_of(200, 8)
    if column == "y":
        later = [(x, 1_000 * y) for x, y in later]
    else:
        later = [({**x, column: 1_000 * x[column]}, y) for x, y in later]
    return at_event(later, lambda old, new: new.unit_changes != old.unit_changes, learn, known=rows)


def several(rows):
    """The same rows with two targets, of which the second is missing here and there."""
    gaps = (None if place % 4 == 0 else -2 * y for place, (_, y) in enumerate(rows))
    return [(x, {"p": y, "q": q}) for (x, y), q in zip(rows, gaps, strict=True)]


def ensemble(kind, learn, rows, new=False, as_targets=list, **parameters):
    """A batch for several trees, in the middle of which the trees are compared for replacement.

    After so many rows the candidate tree is reset, or new features appear; `as_targets` may give
    all rows several targets.
    """
    start = kind(**QUICK, **parameters)
    by_mapping(start, as_targets(rows_of(rows, 1, categories=("c",))))
    numbers = ("a", "b", "d") if new else ("a", "b")
    batch = rows_of(6, 2, numbers=numbers, categories=("c",))
    later = rows_of(20, 3, numbers=numbers, categories=("c",))
    return TreeCase(start, as_targets(batch), as_targets(later), learn)


def first_targets(learn, kind=HoeffdingTreeRegressor):
    """A model that knows nothing comes to have two targets."""
    rows = several(rows_of(30, 2))
    return TreeCase(kind(**QUICK), rows[:4], rows[4:], learn)


def split_of_targets(learn=by_mapping):
    """A leaf of a tree of two targets is split."""
    tree = HoeffdingTreeRegressor(**QUICK)
    rows = several(rows_of(400, 1))
    one_by_one(tree, rows[:60])
    place = 60
    while tree.n_leaves < 4:
        before = tree.copy()
        tree.learn_one(*rows[place])
        place += 1
    return TreeCase(before, rows[place - 1 : place + 2], rows[place + 2 : place + 30], learn)


def new_category_of_targets(learn=by_mapping):
    """A category comes to a tree of two targets: then each has models of its own."""
    tree = HoeffdingTreeRegressor(**QUICK)
    one_by_one(tree, several(rows_of(100, 1)))
    rows = several(rows_of(30, 3, categories=("c",)))
    return TreeCase(tree, rows[:4], rows[4:], learn)


def wide(learn=by_mapping):
    """Many new features come to a tree with leaves: tens of megabytes are needed."""
    tree = grown(600)
    named = {"numbers": ("a", "b", *(f"w{number}" for number in range(1_500)))}
    return TreeCase(tree, rows_of(3, 2, **named), rows_of(3, 3, **named), learn)


class Batches(TreeCase):
    """A tree that learns batch after batch, of which each brings new features."""

    def __init__(self, learn=by_mapping, batches=10, size=12, **parameters):
        self.batches = []
        tree = HoeffdingTreeRegressor(**QUICK, **parameters)
        numbers = ["a", "b"]
        one_by_one(tree, rows_of(150, 1, categories=("c",)))
        self.learn_batch = learn
        rows = []
        for number in range(batches):
            numbers.append(f"n{number}")
            rows += rows_of(
                size, number, numbers=tuple(numbers), categories=("c",), labels=("red",)
            )
        super().__init__(tree, rows, rows[-20:], partial(self._in_batches, learn, size))

    @staticmethod
    def _in_batches(learn, size, tree, rows):
        batch = []
        for row in rows:
            if batch and len(row[0]) != len(batch[0][0]):
                learn(tree, batch)
                batch = []
            batch.append(row)
        learn(tree, batch)


# -- files and copies -----------------------------------------------------------------------------


class LoadCase(Case):
    """Something is made from a model, or from its bytes; the model is not changed, nor locked."""

    def __init__(self, model: Any, make: Callable[[Any, bytes], Any]) -> None:
        self.kind, self.data, self.make = type(model), model.to_bytes(), make
        self.made = make(model, self.data).to_bytes()

    def start(self):
        return [self.kind.from_bytes(self.data)]

    def act(self, subject):
        subject.append(self.make(subject[0], self.data))

    def check(self, subject):
        model = subject[0]
        if model.to_bytes() != self.data:
            raise BrokenError("changed by loading or copying it")
        if any(
            made.to_bytes() != self.made for made in [*subject[1:], self.make(model, self.data)]
        ):
            raise BrokenError("the result is not the expected one")
        if isinstance(model, HoeffdingTreeRegressor):
            model.learn_one({"a": 1.0, "new": 2.0}, 1.0)
        return "before" if len(subject) == 1 else "after"


def look(tree, data):
    """Do all that does not change a tree."""
    _use(tree, rows_of(2, 1, categories=("c",)))
    tree.explain({"a": 1.0, "c": "red"})
    _ = tree.summary, tree.feature_importances, repr(tree)
    return tree


class FileLoadCase(LoadCase):
    """A tree is loaded from a file."""

    def __init__(self, tree: HoeffdingTreeRegressor) -> None:
        super().__init__(tree, lambda tree, data: tree)
        self.make = lambda tree, data: sapwood.load(self.path)

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "my.sapwood")
        self.path.write_bytes(self.data)
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder)


class DeltaCase(Case):
    """A tree takes in what workers have learned, and splits."""

    def __init__(self, new: bool = False) -> None:
        tree = grown(categories=("c",))
        self.before, leaves = tree.to_bytes(), tree.n_leaves
        snapshot, deltas = take_snapshot(tree), []
        names = ("a", "b", "z") if new else ("a", "b")
        for shard in range(2):
            worker = ShardLearner(snapshot, shard)
            rows = rows_of(300, 20 + shard, numbers=names, categories=("c",))
            worker.predict_learn_many(*columns_of(rows))
            deltas.append(worker.delta())
        self.delta = deltas[0] + deltas[1]
        self.act(tree)
        self.after = tree.to_bytes()
        assert tree.n_leaves > leaves

    def start(self):
        return model.from_bytes(self.before)

    def act(self, tree):
        apply(tree, self.delta)

    def check(self, tree):
        data = tree.to_bytes()
        if data not in (self.before, self.after):
            raise BrokenError("neither without the delta nor with it")
        _use(tree, rows_of(2, 1, categories=("c",)))
        tree.learn_one({"a": 1.0, "new": 2.0}, 1.0)
        return "before" if data == self.before else "after"


class ClassCase(Case):
    """A classifier learns rows; they may bring a class, or have no label."""

    def __init__(self, kind, labels, classes=2, single=False, **parameters):
        self.labels, self.single = labels, single
        made = kind(**parameters)
        rows = [x for x, _ in rows_of(120, 1, categories=("c",))]
        made.predict_learn_many(rows, [f"class {n % classes}" for n in range(len(rows))])
        self.rows = [x for x, _ in rows_of(len(labels), 2, categories=("c",))]
        made.predict_many(self.rows)
        self.kind, self.before = type(made), made.to_bytes()
        self.act(made)
        self.after = made.to_bytes()
        assert self.after != self.before

    def start(self):
        return self.kind.from_bytes(self.before)

    def act(self, classifier):
        if self.single:
            classifier.learn_one(self.rows[0], self.labels[0])
        else:
            classifier.learn_many(self.rows, self.labels)

    def check(self, classifier):
        data = classifier.to_bytes()
        if data not in (self.before, self.after):
            raise BrokenError("neither without the rows nor with them")
        restored = self.kind.from_bytes(data)
        for each in (classifier, restored):
            each.learn_one({"a": 1.0, "new": 2.0}, "one more")
        if classifier.to_bytes() != restored.to_bytes():
            raise BrokenError("it goes on otherwise than what was saved")
        return "before" if data == self.before else "after"


class PruneCase(Case):
    """A node becomes a leaf again, or other features may be split on."""

    def __init__(self, act, targets=1, **parameters):
        tree = HoeffdingTreeRegressor(grace_period=30, **parameters)
        columns, y = columns_of(rows_of(500, 1, categories=("c",)))
        tree.learn_many(columns, y if targets == 1 else {"y": y, "z": [2.0 * each for each in y]})
        assert tree.n_leaves > 2
        self.change, self.before = act, tree.to_bytes()
        self.act(tree)
        self.after = tree.to_bytes()
        assert self.after != self.before

    def start(self):
        return model.from_bytes(self.before)

    def act(self, tree):
        self.change(tree)

    def check(self, tree):
        data = tree.to_bytes()
        if data not in (self.before, self.after):
            raise BrokenError("neither as before nor as after")
        restored = model.from_bytes(data)
        for each in (tree, restored):
            each.prune(0)
        if tree.to_bytes() != restored.to_bytes():
            raise BrokenError("it goes on otherwise than what was saved")
        tree.predict_one({"a": 1.0, "new": 2.0})
        return "before" if data == self.before else "after"


def prune_last(tree):
    """Prune the last node that is split."""
    nodes = tree._kernel.node_table[: tree._kernel.node_count]
    tree.prune(int(np.flatnonzero(nodes["kind"])[-1]))


def split_no_more(tree):
    tree.no_splits = ["a"]


def united(kind, **parameters):
    """Two models become one; neither is changed."""
    north, south = kind(**parameters), kind(**parameters)
    one_by_one(north, rows_of(200, 1, numbers=("a", "b"), categories=("c",)))
    by_mapping(south, rows_of(250, 2, numbers=("b", "d", "a"), categories=("c", "e")))
    whole = south.to_bytes()

    def merge(first, data):
        found = first.merge(south)
        if south.to_bytes() != whole:
            raise BrokenError("the other model was changed")
        return found

    return LoadCase(north, merge)


class SaveCase(Case):
    """A tree replaces another in a file."""

    def __init__(self, old: HoeffdingTreeRegressor, new: HoeffdingTreeRegressor) -> None:
        self.tree, self.old, self.new = new, old.to_bytes(), new.to_bytes()

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "my.sapwood")
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder)

    def start(self):
        self.path.write_bytes(self.old)
        return self.path

    def act(self, path):
        self.tree.save(path)

    def check(self, path):
        found = path.read_bytes()
        if found not in (self.old, self.new):
            raise BrokenError("the file is neither the old one nor the new one")
        if [*path.parent.iterdir()] != [path]:
            raise BrokenError("there is another file next to the file")
        self.tree.save(path)
        if path.read_bytes() != self.new or self.tree.to_bytes() != self.new:
            raise BrokenError("cannot be saved afterwards")
        return "before" if found == self.old else "after"


# -- observers ------------------------------------------------------------------------------------


class ObserverCase(Case):
    """An observer is changed."""

    def __init__(self, observer: Any, change: Callable[[Any], Any]) -> None:
        self.kind, self.change = type(observer), change
        self.old = observer.to_bytes()
        done = observer.copy()
        change(done)
        self.new = done.to_bytes()
        assert self.new != self.old
        self.ends = [self._end_of(each) for each in (self.old, self.new)]

    def start(self):
        return self.kind.from_bytes(self.old)

    def act(self, observer):
        self.change(observer)

    def check(self, observer):
        found = observer.to_bytes()
        if found not in (self.old, self.new):
            raise BrokenError("neither as before nor as after")
        restored = self.kind.from_bytes(found)
        size = len(observer)
        if size != len(restored) or repr(observer.best_split()) != repr(restored.best_split()):
            raise BrokenError("its content is not that of its bytes")
        self._go_on(observer)
        if observer.to_bytes() != self.ends[found == self.new]:
            raise BrokenError("goes on to another end")
        return "after" if found == self.new else "before"

    def _end_of(self, data):
        observer = self.kind.from_bytes(data)
        self._go_on(observer)
        return observer.to_bytes()

    def _go_on(self, observer):
        x, y = observations(60, 11)
        for each in zip(x[:20], y[:20], strict=True):
            observer.update(*each)
        observer.update_many(x[20:], y[20:])


def observations(count, seed):
    """Values and targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    return x.tolist(), (np.where(x > 0.3, 5.0, 1.0) + 0.1 * rng.normal(size=count)).tolist()


def watched(make, count=200, seed=1):
    """An observer that has watched something."""
    observer = make()
    observer.update_many(*observations(count, seed))
    return observer


def many(make):
    """A batch that brings new elements."""
    x, y = observations(150, 2)
    return ObserverCase(watched(make), lambda observer: observer.update_many(x, y))


class SingleCase(ObserverCase):
    """One observation, for which tables have to grow, or slots to be merged."""

    def __init__(self, make: Callable[[], Any], happens: Callable[[Any, Any], bool]) -> None:
        self.make, self.seen = make, 0
        x, y = observations(500, 5)
        self.observations = [*zip(x, y, strict=True)]
        observer, now = make(), (0, 0)
        while True:
            before = now
            observer.update(*self.observations[self.seen])
            now = observer.nbytes, len(observer)
            if self.seen > 10 and happens(before, now):
                break
            self.seen += 1
        last = self.observations[self.seen]
        super().__init__(self.start(), lambda each: each.update(*last))

    def start(self):
        observer = self.make()  # not a copy, which has tables as large as they should be
        for each in self.observations[: self.seen]:
            observer.update(*each)
        return observer


grows = partial(SingleCase, happens=lambda old, new: new[0] > old[0])
coarsens = partial(SingleCase, happens=lambda old, new: new[1] < old[1])


def merged(make, other=None):
    """Another observer is merged."""
    second = watched(other or make, 150, 2)
    return ObserverCase(watched(make), lambda observer: observer.merge(second))


def added(make):
    """Another observer is added; neither is changed."""
    second = watched(make, 150, 2)
    return LoadCase(watched(make), lambda first, data: first + second)


# -- runs -----------------------------------------------------------------------------------------


class CheckpointCase(Case):
    """The state of a run is saved where there are two older ones."""

    def __init__(self) -> None:
        rows = rows_of(200, 9, categories=("c",))
        columns, y = columns_of(rows)
        stream = as_stream((columns, y))
        tree = HoeffdingTreeRegressor(**QUICK)
        self.run = Prequential(tree, stream, window=30)
        self.steps = self.run.steps(40)
        self.states: list[bytes] = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder, "run.checkpoint")
        file = CheckpointFile(self.path)
        for _ in range(2):
            self._step()
            file.save(self.run, {}, {})
        self.files = {path.name: path.read_bytes() for path in Path(self.folder).iterdir()}
        self._step()
        return self

    def _step(self):
        next(self.steps)
        self.states.append(self.run.model.to_bytes())

    def __exit__(self, *error):
        shutil.rmtree(self.folder)

    def start(self):
        for path in Path(self.folder).iterdir():
            path.unlink()
        for name, data in self.files.items():
            Path(self.folder, name).write_bytes(data)
        file = CheckpointFile(self.path)
        file.load()
        return file

    def act(self, file):
        file.save(self.run, {}, {})

    def check(self, file):
        again = CheckpointFile(self.path)
        found = again.load()
        if found is None or again.warning or found.model.to_bytes() not in self.states[1:]:
            raise BrokenError("neither the old state nor the new one is found")
        file.save(self.run, {}, {})
        if CheckpointFile(self.path).load().model.to_bytes() != self.states[2]:
            raise BrokenError("cannot be saved afterwards")
        return "after" if found.model.to_bytes() == self.states[2] else "before"


class RunCase(Case):
    """An evaluation goes on, is asked to go on, and refuses only if that would learn rows twice."""

    def __init__(self) -> None:
        self.tree = grown(100)
        columns, y = columns_of(rows_of(40, 9))
        self.stream = as_stream((columns, y))
        run = self.start()
        self.act(run)
        self.end, self.total = run.model.to_bytes(), repr(run.finish().total)

    def start(self):
        return Prequential(self.tree.copy(), self.stream, window=30)

    def act(self, run):
        for _ in run.steps(16):
            pass

    def check(self, run):
        read = run.rows_read
        _use(run.model, rows_of(5, 1))
        try:
            self.act(run)
        except RuntimeError as error:
            if "inside of a step" not in str(error):
                raise
            run.model.learn_one({"a": 1.0}, 1.0)
            return "inside a step"
        if run.model.to_bytes() != self.end or repr(run.finish().total) != self.total:
            raise BrokenError("goes on to another end")
        return "after" if read == 40 else "between steps"


RADIUS = partial(QuantizerObserver, 0.25)
COARSE = partial(QuantizerObserver, 0.5)
FINE = partial(QuantizerObserver, 0.01)
TWO = partial(QuantizerObserver, slots=16)

CASES: dict[str, Callable[[], Case]] = {
    "new features, one": partial(new_features, one_by_one),
    "new features, mapping": partial(new_features, by_mapping),
    "new features, predicting": partial(new_features, predicting),
    "new features, pandas": partial(new_features, by_pandas),
    "new features, arrow": partial(new_features, by_arrow),
    "new features, means": partial(new_features, by_mapping, leaf="mean"),
    "new features, E-BST": partial(new_features, by_mapping, observer=EBSTObserver()),
    "new features, radius": partial(new_features, by_mapping, observer=RADIUS()),
    "new features, max_bytes": partial(new_features, by_mapping, max_bytes=200_000),
    "new features, E-BST, max_bytes": partial(
        new_features, by_mapping, observer=EBSTObserver(), max_bytes=400_000
    ),
    "first features, array": partial(first_features, by_array, (0, 1, 2)),
    "first features, one": partial(first_features, one_by_one),
    "new categories, one": partial(new_categories, one_by_one),
    "new categories, mapping": partial(new_categories, by_mapping),
    "new categories, max_bytes": partial(new_categories, by_mapping, max_bytes=400_000),
    "many categories, one": partial(many_categories, one_by_one),
    "many categories, mapping": partial(many_categories, by_mapping),
    "many categories, E-BST": partial(many_categories, by_mapping, observer=EBSTObserver()),
    "more places": partial(many_categories, by_mapping, labels=127),
    "a trial begins, one": partial(on_trial, one_by_one, 317),
    "a trial begins, mapping": partial(on_trial, by_mapping, 317),
    "a trial is decided, one": partial(on_trial, one_by_one, 337),
    "a trial is decided, mapping": partial(on_trial, by_mapping, 337),
    "unknown kinds, one": partial(unknown_kinds, one_by_one),
    "unknown kinds, mapping": partial(unknown_kinds, by_mapping),
    "unknown kinds, E-BST": partial(unknown_kinds, by_mapping, observer=EBSTObserver()),
    "split, slots": split,
    "split, one by one": partial(split, one_by_one),
    "split, category": partial(split, leaves=1, categories=("c",)),
    "split, E-BST": partial(split, observer=EBSTObserver()),
    "split, TE-BST": partial(split, observer=TEBSTObserver()),
    "split, radius": partial(split, leaves=1, observer=RADIUS()),
    "split, std/2": partial(split, observer=QuantizerObserver("std/2")),
    "split, longer tables": longer_tables,
    "targets, first": partial(first_targets, by_mapping),
    "targets, first, one": partial(first_targets, one_by_one),
    "targets, split": split_of_targets,
    "targets, new category": new_category_of_targets,
    "review": review,
    "review, one by one": partial(review, one_by_one),
    "review, E-BST": partial(review, observer=EBSTObserver()),
    "ranking, slots": partial(ranking, max_bytes=40_000),
    "ranking, E-BST": partial(ranking, max_bytes=120_000, observer=EBSTObserver()),
    "ranking, E-BST, one by one": partial(
        ranking, one_by_one, max_bytes=120_000, observer=EBSTObserver()
    ),
    "other units of a feature": partial(other_units, "a"),
    "other units of a feature, one by one": partial(other_units, "a", one_by_one),
    "other units of y": partial(other_units, "y"),
    "forest, looking": partial(ensemble, FOREST, by_mapping, 1_997),
    "forest, looking, one by one": partial(ensemble, FOREST, one_by_one, 1_997),
    "forest, new features": partial(ensemble, FOREST, by_mapping, 300, new=True),
    "forest, targets, first": partial(first_targets, by_mapping, FOREST),
    "forest, targets, first, one": partial(first_targets, one_by_one, FOREST),
    "forest, targets, looking": partial(ensemble, FOREST, by_mapping, 1_997, as_targets=several),
    "forest, targets, looking, one by one": partial(
        ensemble, FOREST, one_by_one, 1_997, as_targets=several
    ),
    "forest, targets, threads": partial(
        ensemble, FOREST, predicting, 497, as_targets=several, threads=2
    ),
    "adaptive, targets, looking": partial(
        ensemble, ADAPTIVE, by_mapping, 7_997, as_targets=several
    ),
    "forest, threads": partial(ensemble, FOREST, predicting, 497, threads=2),
    "forest, max_bytes": partial(ensemble, FOREST, by_mapping, 497, max_bytes=500_000),
    "adaptive, looking": partial(ensemble, ADAPTIVE, by_mapping, 7_997),
    "wide": wide,
    "batches": Batches,
    "batches, E-BST": partial(Batches, observer=EBSTObserver()),
    "batches, max_bytes": partial(Batches, max_bytes=400_000),
    "from_bytes": lambda: LoadCase(
        grown(categories=("c",)), lambda tree, data: HoeffdingTreeRegressor.from_bytes(data)
    ),
    "from_bytes, E-BST": lambda: LoadCase(
        grown(observer=EBSTObserver()),
        lambda tree, data: HoeffdingTreeRegressor.from_bytes(data),
    ),
    "load": lambda: FileLoadCase(grown(categories=("c",))),
    "copy": lambda: LoadCase(grown(categories=("c",)), lambda tree, data: tree.copy()),
    "looking": lambda: LoadCase(grown(categories=("c",)), look),
    "delta": DeltaCase,
    "classes, known": partial(ClassCase, TREE_OF_CLASSES, KNOWN_LABELS, 3),
    "classes, one": partial(ClassCase, TREE_OF_CLASSES, ["class 1"], single=True),
    "classes, balanced": partial(ClassCase, TREE_OF_CLASSES, KNOWN_LABELS, class_weight="balanced"),
    "classes, third": partial(ClassCase, TREE_OF_CLASSES, ["class 0", "third", "class 1"]),
    "classes, new one": partial(ClassCase, TREE_OF_CLASSES, ["fourth"], 3, single=True),
    "classes, unlabelled": partial(ClassCase, TREE_OF_CLASSES, ["class 0", None, "class 1"]),
    "classes, unlabelled one": partial(ClassCase, TREE_OF_CLASSES, [None], single=True),
    "classes, forest, new": partial(
        ClassCase, FOREST_OF_CLASSES, ["class 0", "fourth", None, "class 1"], 3
    ),
    "delta, new features": partial(DeltaCase, new=True),
    "prune": partial(PruneCase, prune_last),
    "prune, E-BST": partial(PruneCase, prune_last, observer=EBSTObserver()),
    "prune, targets": partial(PruneCase, prune_last, targets=2),
    "prune, max_bytes": partial(PruneCase, prune_last, max_bytes=120_000),
    "no splits": partial(PruneCase, split_no_more),
    "union, trees": partial(united, HoeffdingTreeRegressor),
    "union, forests": partial(united, ForestRegressor, members=2, threads=1),
    "union, max_bytes": partial(united, HoeffdingTreeRegressor, max_bytes=200_000),
    "save": lambda: SaveCase(grown(), grown(400)),
    "update_many, auto": partial(many, QuantizerObserver),
    "update_many, radius": partial(many, FINE),
    "update_many, E-BST": partial(many, EBSTObserver),
    "update_many, TE-BST": partial(many, TEBSTObserver),
    "update, auto": partial(grows, QuantizerObserver),
    "update, auto, coarser": partial(coarsens, QuantizerObserver),
    "update, radius": partial(grows, FINE),
    "update, E-BST": partial(grows, EBSTObserver),
    "merge, auto": partial(merged, QuantizerObserver),
    "merge, few slots": partial(merged, TWO),
    "merge, radius": partial(merged, FINE),
    "merge, coarser": partial(merged, RADIUS, COARSE),
    "merge, finer": partial(merged, COARSE, RADIUS),
    "merge, E-BST": partial(merged, EBSTObserver),
    "merge, TE-BST": partial(merged, TEBSTObserver),
    "add": partial(added, QuantizerObserver),
    "observer from_bytes": lambda: LoadCase(
        watched(EBSTObserver), lambda observer, data: EBSTObserver.from_bytes(data)
    ),
    "checkpoint": CheckpointCase,
    "prequential": lambda: TreeCase(
        grown(100, seed=4), rows_of(12, 9), rows_of(20, 8), by_evaluation
    ),
    "run": RunCase,
}
