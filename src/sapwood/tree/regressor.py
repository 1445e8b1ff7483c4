"""The tree: an online regressor."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sapwood import door
from sapwood.door import Label
from sapwood.foreign_calls import Elsewhere
from sapwood.inspect import draw, snapshot, view
from sapwood.inspect.explanation import Explanation
from sapwood.observers.base import TableObserver
from sapwood.observers.quantizer import QuantizerObserver
from sapwood.rows import frames
from sapwood.rows._dict_row import RowReader
from sapwood.rows.encoder import Plan
from sapwood.rows.features import Features
from sapwood.storage import container
from sapwood.storage.atomic import StrPath, write_atomically
from sapwood.tree import _memory, memory, tree_state
from sapwood.tree._kernel import TreeKernel, refuse_row
from sapwood.tree._relay import Registration
from sapwood.tree.bounds import HoeffdingBound
from sapwood.tree.growth import SPLIT_ON, GrowthRules, SplitOn
from sapwood.tree.leaf_observers import LeafObservers
from sapwood.tree.memory import MemoryRules

__all__ = ["HoeffdingTreeRegressor"]

FloatArray = NDArray[np.float64]

Leaf = Literal["adaptive", "linear", "mean"]
Track = Literal["auto"] | None

LEAVES = ("adaptive", "linear", "mean")
DEEPEST = 10**6
SLOTS = 32
LEAST_SHARE = 1e-6
LEAST_DELTA = 1e-300


class HoeffdingTreeRegressor(Elsewhere):
    """A regression tree that learns from a stream, row by row, in bounded time and memory.

    Leaves watch their features, and split when the Hoeffding bound says that a cut is better than
    those of other features. They predict by their mean, by linear models, or by both, as their
    own recent errors say, and the tree follows the stream by its recent errors as a whole.

    Parameters
    ----------
    grace_period : float
        The weight of the rows that a leaf sees before it may split.
    delta : float
        The probability that a split is not the one that endless rows would show to be best.
    tau : float
        If the best two features are so near to each other that the bound is below this, the leaf
        splits all the same.
    min_share : float
        The share of a leaf's rows that either side of a split has to have.
    max_depth : int, optional
        How deep the tree may become; 0 means that it never splits.
    observer : observer, optional
        An empty observer, as a model for those by which leaves watch their numbers. By default,
        and for every `QuantizerObserver` of radius "auto", a leaf has so many slots of equal
        width for each number (32 by default) over the range in which it saw values.
    leaf : {"adaptive", "linear", "mean"}
        How a leaf predicts: by its mean; by linear models, which forget at different rates; or by
        all of them, each with a weight that its own faded error decides.
    split_on : {"best", "residual", "target"}
        What splits are to explain: y itself; what the leaf's linear model leaves of it, by a step
        or by a bend; or whichever leaves the smaller error, and y where parts of it are far
        apart. With ``leaf="mean"`` it is y.
    track : {"auto", None}
        Whether predictions are corrected by the recent errors of the tree as a whole, at the rate
        that lately had the smallest error, none among them.
    max_bytes : int, optional
        What the tree may occupy. When that is full, the leaves that promise least stop watching,
        which they need for splits, and start again when there is room.
    categorical : iterable of str or int
        Names of features that are categories although their values are numbers. Features whose
        values are strings, or a pandas categorical, are so anyway.

    Attributes
    ----------
    time_formats : dict of str to str
        By which formats, as in `datetime.strptime`, times became the numbers of features. The tree
        itself has no use for it: it is saved for whoever reads rows, such as `sapwood predict`.

    Notes
    -----
    Missing values (NaN, None, an absent key) are legal in all features. A split sends them to the
    side whose rows are more like those in which the value was missing, or to the heavier side if
    there were none; likewise categories that it has never seen. In linear models a missing value
    counts as the mean. Numbers that are infinite, y that are not finite, and weights that are not
    positive are refused, before anything is changed.

    References
    ----------
    E. Ikonomovska, J. Gama and S. Džeroski, "Learning model trees from evolving data streams",
    Data Mining and Knowledge Discovery 23, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((5000, 3))
    >>> y = np.where(X[:, 0] < 0.5, 10 * X[:, 1], -10 * X[:, 1])
    >>> tree = HoeffdingTreeRegressor()
    >>> predictions = tree.predict_learn_many(X, y)
    >>> bool(np.mean(np.abs(predictions[-1000:] - y[-1000:])) < 0.5)
    True
    >>> tree.learn_one({0: 0.2, 1: 0.5, 2: None}, 5.0)
    >>> round(tree.predict_one({0: 0.2, 1: 0.5, 2: None}))
    5
    """

    def __init__(
        self,
        *,
        grace_period: float = 200,
        delta: float = 1e-3,
        tau: float = 0.05,
        min_share: float = 0.02,
        max_depth: int | None = None,
        observer: TableObserver | None = None,
        leaf: Leaf = "adaptive",
        split_on: SplitOn = "best",
        track: Track = "auto",
        max_bytes: int | None = None,
        categorical: Iterable[Label] = (),
    ) -> None:
        _check_choice(leaf, "leaf", LEAVES)
        _check_choice(split_on, "split_on", SPLIT_ON)
        _check_choice(track, "track", ("auto", None))
        if observer is None:
            observer = QuantizerObserver(slots=SLOTS)
        observing = LeafObservers(observer)
        growth = GrowthRules(
            grace_period=door.positive(grace_period, "grace_period"),
            bound=HoeffdingBound(door.between(delta, "delta", LEAST_DELTA, 1.0)),
            tau=door.between(tau, "tau", 0.0, 1.0),
            min_share=door.between(min_share, "min_share", LEAST_SHARE, 0.5),
            max_depth=DEEPEST
            if max_depth is None
            else door.whole(max_depth, "max_depth", 0, DEEPEST),
            split_on=split_on if leaf != "mean" else "target",
        )
        limit = None if max_bytes is None else door.whole(max_bytes, "max_bytes", 1, 2**62)
        features = Features(categorical)
        self._parameters: dict[str, Any] = {
            "grace_period": growth.grace_period,
            "delta": growth.bound.delta,
            "tau": growth.tau,
            "min_share": growth.min_share,
            "max_depth": max_depth if max_depth is None else int(max_depth),
            "observer": observer,
            "leaf": leaf,
            "split_on": split_on,
            "track": track,
            "max_bytes": limit,
            "categorical": tuple(features.to_header()["categorical"]),
        }
        self.time_formats: dict[str, str] = {}
        self._kernel = TreeKernel(
            observing,
            leaf != "mean",
            leaf != "linear",
            track == "auto",
            growth.to_record(),
            MemoryRules.of(limit, observing).to_record(),
            memory.name_bytes(features, features.known),
        )
        self._features = features
        self._reader = RowReader(features)

    # -- learning and predicting ------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one row.

        Parameters
        ----------
        x : dict
            The features: numbers, bools, strings; None, NaN or nothing where a value is missing.
        y : float
            The target: any finite number.
        w : float
            How much the row counts: positive and finite. Two rows of weight 1 are as much
            evidence as one of weight 2.

        Raises
        ------
        ValueError, OverflowError
            If a value is not as said; nothing is changed then.

        Examples
        --------
        >>> tree = HoeffdingTreeRegressor()
        >>> tree.learn_one({"temp": 21.5, "city": "Oslo"}, 310)
        >>> tree.predict_one({"temp": 21.5})
        310.0
        >>> tree.learn_one({"temp": "warm"}, 300)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: x['temp'] = 'warm' must be a number, as the values of this feature before ...
        """
        # What is no float may run code of its own, and has to before anything else is read.
        if type(y) is not float:
            y = door.number(y, "y")
        if type(w) is not float:
            w = door.number(w, "w")
        if not self._kernel.learn_one(self._reader, x, y, w):
            # It brings something new, or something bad; y and w were found good.
            self._learn_plan(self._features.read_one(x, learn=True), np.array([y]), np.array([w]))

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict one row; nothing is changed.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`. Unknown ones are ignored, with a warning if there
            are no others; unknown categories count as missing.

        Returns
        -------
        float
            The prediction; 0.0 before anything was learned.
        """
        prediction = self._kernel.predict_one(self._reader, x)
        if prediction is None:
            return float(self._predict_plan(self._features.read_one(x, learn=False))[0])
        return prediction

    def learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> None:
        """Learn many rows: the same as `learn_one` in a loop, or nothing at all.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features. Columns of an array are the features in the order in which they were
            first seen, or named 0, 1, … if there are none yet. Frames are those of pandas, polars
            and pyarrow, or any Arrow stream.
        y : array_like or series of float, shape (n,)
            The targets, by position: an index does not count.
        w : array_like or series of float, shape (n,), optional
            The weights; 1 each if not given.
        """
        self._learn(X, y, w, None)

    def predict_many(self, X: Any) -> Any:
        """Predict many rows: the same as `predict_one` in a loop.

        Parameters
        ----------
        X : array_like, mapping of columns, or data frame
            The features, as for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            The predictions: for a frame of pandas or polars a series of that library named
            "prediction", with the index of the frame; for one of pyarrow an array of pyarrow.
        """
        return frames.like(X, self._predict_plan(self._features.read(X, learn=False)))

    def predict_learn_many(self, X: Any, y: ArrayLike, w: ArrayLike | None = None) -> Any:
        """Predict each row before it is learned: the prequential loop.

        Parameters
        ----------
        X, y, w
            As for `learn_many`.

        Returns
        -------
        ndarray of float, shape (n,), or series
            What `predict_one` would have returned for each row just before `learn_one`; of the
            type that `predict_many` returns.
        """
        predictions = np.empty(np.shape(y)[:1])
        self._learn(X, y, w, predictions)
        return frames.like(X, predictions)

    def _predict_plan(self, plan: Plan) -> FloatArray:
        predictions = np.empty(len(plan.matrix))
        self._kernel.predict(plan.matrix, predictions)
        return predictions

    def _learn(
        self, X: Any, y: ArrayLike, w: ArrayLike | None, predictions: FloatArray | None
    ) -> None:
        # What is converted may run code of its own, and has to before X is read.
        targets = np.ascontiguousarray(door.column(y, "y"))
        weights = door.weights(w, len(targets))
        plan = self._features.read(X, learn=True)
        if len(targets) != len(plan.matrix):
            raise ValueError(
                f"X has {len(plan.matrix)} rows and y has {len(targets)} values: the lengths must "
                "agree"
            )
        self._learn_plan(plan, targets, weights, predictions)

    def _learn_plan(
        self,
        plan: Plan,
        targets: FloatArray,
        weights: FloatArray,
        predictions: FloatArray | None = None,
    ) -> None:
        """Learn rows that were read, if their y and weights are good."""
        bad = self._kernel.check(targets, weights)
        if bad >= 0:
            refuse_row(targets[bad], weights[bad], bad)
        self._kernel.learn(
            plan.matrix, targets, weights, predictions, partial(self._registration, plan)
        )

    def _registration(self, plan: Plan) -> Registration | None:
        """Return what rows bring that is new, once nobody else may change the tree."""
        known = plan.known()
        if known is self._features.known:
            return None
        relay = memory.relay(self._kernel, self._features, known)
        return Registration(self._features, known, [relay])

    # -- looking inside -----------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make an empty tree like this one."""
        return dict(self._parameters)

    @property
    def features(self) -> list[Label]:
        """The names of the features, in the order of their first appearance."""
        return list(self._features.names)

    @property
    def feature_kinds(self) -> dict[Label, str]:
        """What each feature is: "number", "category", or "unknown" if it was always missing."""
        return dict(zip(self._features.names, self._features.kinds, strict=True))

    @property
    def n_leaves(self) -> int:
        """How many leaves the tree has."""
        return self._kernel.leaf_count

    @property
    def nbytes(self) -> int:
        """Bytes that the tree occupies: all tables, and the names of features and categories."""
        return self._kernel.while_still(_memory.nbytes, self._kernel)

    @property
    def feature_importances(self) -> dict[str, float]:
        """The share of each feature in the squared error that splits removed; sums to 1."""
        return view.feature_importances(self._picture())

    @property
    def summary(self) -> view.Summary:
        """The tree in a few numbers; `print` it to read it."""
        return view.summary(
            self._picture(),
            rows=int(self._kernel.rows),
            weight=self._kernel.weight,
            nbytes=self.nbytes,
        )

    def to_text(self, max_depth: int | None = None, digits: int = 4) -> str:
        """Return the tree as indented text, one line a node.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth stand for all that is below them.
        digits : int
            Significant digits of a number.
        """
        return view.to_text(self._picture(), max_depth, digits)

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per node."""
        return view.to_frame(self._picture())

    def draw(self, max_depth: int | None = 5, **options: Any) -> draw.Drawing:
        """Return a picture of the tree, in SVG.

        Parameters
        ----------
        max_depth : int, optional
            Nodes at this depth stand for all that is below them.
        **options
            As for `sapwood.inspect.draw.draw`: digits, target, orientation.
        """
        return draw.draw(self._picture(), max_depth, **options)

    def explain(self, x: dict[Any, Any]) -> Explanation:
        """Return how the prediction for a row comes about; `print` it to read it.

        Parameters
        ----------
        x : dict
            The features, as for `predict_one`.
        """
        row = self._features.read_one(x, learn=False).matrix[0]
        kernel = self._kernel
        return kernel.while_still(snapshot.explain, kernel, self._features, x, row)

    def _picture(self) -> view.TreePicture:
        return self._kernel.while_still(snapshot.picture, self._kernel, self._features)

    def __repr__(self) -> str:
        default = type(self)()._parameters
        arguments = ", ".join(
            f"{name}={value!r}"
            for name, value in self._parameters.items()
            if repr(value) != repr(default[name])
        )
        rows = int(self._kernel.rows)
        return f"<HoeffdingTreeRegressor({arguments}): {self.n_leaves} leaves, {rows} rows learned>"

    # -- files and copies ---------------------------------------------------------------------

    def save(self, path: StrPath) -> None:
        """Write the tree to a file, whole or not at all; `sapwood.load` reads it.

        Parameters
        ----------
        path : str or path
            The file; if it exists, it is replaced.

        Examples
        --------
        >>> import sapwood, tempfile, os
        >>> tree = HoeffdingTreeRegressor()
        >>> tree.learn_many([[1.0], [2.0]], [10.0, 20.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "my.sapwood")
        ...     tree.save(path)
        ...     twin = sapwood.load(path)
        >>> twin.predict_one({0: 1.5}) == tree.predict_one({0: 1.5})
        True
        """
        write_atomically(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        return self._kernel.while_still(tree_state.packed, self)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "the buffer") -> Self:
        """Restore what `to_bytes` made.

        Parameters
        ----------
        data : bytes
            May come from anywhere: no code is run, and all is checked.
        source : str
            What the bytes are called in a message.

        Raises
        ------
        sapwood.ModelFileError
            If they are not a tree.
        """
        return tree_state.restore(cls, *container.unpack(data, tree_state.KIND, source), source)

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).from_bytes(self.to_bytes())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)


def _check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    if not any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    ):
        raise ValueError(f"{name} = {value!r}: one of {', '.join(map(repr, choices))} is expected")
