"""What a tree knows of its columns: their names, their kinds, and the codes of categories."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Self

from sapwood import door
from sapwood.door import FloatArray, Label
from sapwood.tree import intake
from sapwood.tree.column import CATEGORY, NUMBER, OTHERS, UNKNOWN, Column
from sapwood.tree.intake import MAX_FEATURES, Plan

__all__ = ["CATEGORY", "MAX_FEATURES", "NUMBER", "OTHERS", "UNKNOWN", "Features"]

KINDS = (NUMBER, CATEGORY, UNKNOWN)
HEADER = ("names", "kinds", "labels", "categorical")
SHARED_INTS = 257  # from 0 on, Python keeps but one of each


class Features:
    """The features of a stream, in the order of their first appearance.

    A feature's kind is fixed by its first value that is not missing: a string makes it a category,
    a number or bool a number. The first 63 labels of a category have codes of their own; all later
    ones share the code 63, "others", and are not stored. ``True`` and ``1`` are one label.

    Parameters
    ----------
    categorical : iterable of str or int
        Names of features that are categories although their values may be numbers; a whole float
        is a label too, ``3.0`` the label 3.

    Attributes
    ----------
    names : list of str or int
        The features.
    index : dict
        The column of each name.
    kinds : list of {"number", "category", "unknown"}
        Unknown is a feature that was missing in every row so far.
    categories : list of dict
        The code of each label; empty for numbers.
    version : int
        Grows with every change.

    Examples
    --------
    >>> features = Features()
    >>> features.matrix({"age": [31, None], "colour": ["red", "blue"]}, learn=True)
    array([[31.,  0.],
           [nan,  1.]])
    >>> features.names, features.kinds
    (['age', 'colour'], ['number', 'category'])
    >>> features.matrix({"colour": ["blue", "green"]}, learn=False)  # green was never learned
    array([[nan,  1.],
           [nan, nan]])
    """

    __slots__ = (
        "_content_bytes",
        "categorical",
        "categories",
        "index",
        "kinds",
        "names",
        "version",
    )

    def __init__(self, categorical: Iterable[Label] = ()):
        if isinstance(categorical, str | bytes) or not isinstance(categorical, Iterable):
            raise ValueError(
                f"categorical = {door.shown(categorical)}: a list of names is expected"
            )
        self.categorical = frozenset(door.feature_name(name) for name in categorical)
        if len(self.categorical) > MAX_FEATURES:
            raise ValueError(f"categorical has more than {MAX_FEATURES} names")
        self.names: list[Label] = []
        self.index: dict[Label, int] = {}
        self.kinds: list[str] = []
        self.categories: list[dict[Label, int]] = []
        self.version = 0
        self._content_bytes = sum(map(sys.getsizeof, self.categorical))  # of names and labels

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features):
            return NotImplemented
        return self.to_header() == other.to_header()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.kinds.count(kind)} {kind}" for kind in KINDS)
        return f"<Features: {counts}>"

    def read(self, X: Any, learn: bool) -> Plan:
        """Read many rows, and change nothing yet.

        Parameters
        ----------
        X : array_like, mapping or data frame
            Rows of numbers, strings and missing values (NaN, None, NA, masked): an array of two
            dimensions whose columns are the features in their order (named 0, 1, … if there are
            none yet); or columns by name, as a mapping or a frame of pandas, polars or pyarrow,
            that may lack features and bring new ones.
        learn : bool
            Whether features and labels that are new get a column and a code. If not, they count
            as missing.

        Returns
        -------
        Plan
            `matrix`, an array of doubles in C order with a column for each feature, the new ones
            at the end (X itself where it is that already); and `commit()`, to register what is
            new.

        Raises
        ------
        ValueError
            If X has another shape, or a value is neither finite nor missing, or of another kind
            than its feature; told with its name and row.
        """
        return intake.read(self, X, learn)

    def read_one(self, x: Any, learn: bool) -> Plan:
        """Read one row, and change nothing yet: as `read`, of a mapping of names to values.

        Examples
        --------
        >>> Features().read_one({"age": float("inf")}, learn=True)
        Traceback (most recent call last):
        ...
        ValueError: x['age'] = inf must be finite; use NaN or None for a missing value
        """
        return intake.read_one(self, x, learn)

    def matrix(self, X: Any, learn: bool) -> FloatArray:
        """Read many rows and register at once what is new; see `read`."""
        plan = self.read(X, learn)
        plan.commit()
        return plan.matrix

    @property
    def all_numbers(self) -> bool:
        """Whether there are features, and all are known to be numbers."""
        return bool(self.kinds) and self.kinds.count(NUMBER) == len(self.kinds)

    @property
    def nbytes(self) -> int:
        """Bytes that all names, labels and tables occupy."""
        tables = (self, self.categorical, self.names, self.index, self.kinds, self.categories)
        places = max(0, len(self.names) - SHARED_INTS) * sys.getsizeof(MAX_FEATURES)
        return self._content_bytes + places + sum(map(sys.getsizeof, tables))

    def copy(self) -> Self:
        """Return features that are equal and share nothing that changes."""
        twin = type(self)(self.categorical)
        for name, kind, labels in zip(self.names, self.kinds, self.categories, strict=True):
            twin._add(name, kind, dict(labels))
        return twin

    def to_header(self) -> dict[str, Any]:
        """Return all that is known, in terms of JSON.

        Examples
        --------
        >>> features = Features(categorical=["day"])
        >>> _ = features.matrix({"day": [6, 7]}, learn=True)
        >>> features.to_header()
        {'names': ['day'], 'kinds': ['category'], 'labels': [[6, 7]], 'categorical': ['day']}
        """
        return {
            "names": list(self.names),
            "kinds": list(self.kinds),
            "labels": [list(table) for table in self.categories],
            "categorical": sorted(self.categorical, key=lambda name: (isinstance(name, str), name)),
        }

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """Return the features that a header describes.

        Parameters
        ----------
        header : dict
            What `to_header` returned; nothing of it is trusted.

        Raises
        ------
        ValueError
            If there is anything wrong with it.
        """
        _check(type(header) is dict and set(header) == set(HEADER), "fields are wrong")
        names, kinds, labels, categorical = (header[field] for field in HEADER)
        _check(all(type(header[field]) is list for field in HEADER), "a field is no list")
        _check(len(names) == len(kinds) == len(labels), "the lengths of lists differ")
        _check(len(names) <= MAX_FEATURES, "there are too many features")
        _check_distinct([*names], "name")
        _check_distinct([*categorical], "declared name")
        features = cls(categorical)
        for name, kind, own in zip(names, kinds, labels, strict=True):
            _check(type(kind) is str and kind in KINDS, f"{door.shown(kind)} is no kind")
            _check(type(own) is list and len(own) <= OTHERS, "labels are wrong")
            _check(kind == CATEGORY or not own, f"{door.shown(name)} has labels")
            _check(kind == CATEGORY or name not in features.categorical, "a kind is wrong")
            _check_distinct(own, "label")
            features._add(name, kind, {label: code for code, label in enumerate(own)})
        return features

    def _column(self, name: Label, learn: bool) -> Column:
        """Return what is known of a feature, for a reading."""
        declared = name in self.categorical
        place = self.index.get(name)
        if place is None:
            return Column(name, CATEGORY if declared else UNKNOWN, {}, declared, learn)
        return Column(name, self.kinds[place], self.categories[place], declared, learn)

    def _register(self, version: int, columns: Sequence[Column]) -> None:
        """Take what a reading has added, if nothing else has changed since then."""
        if version != self.version:
            raise RuntimeError(
                "the features changed while rows were read: another thread is at it, or the rows "
                "themselves; give each thread its own model"
            )
        for column in columns:
            if not column.learn:
                continue
            place = self.index.get(column.name)
            if place is None:
                self._add(column.name, column.kind, dict(column.fresh))
            elif column.fresh or column.kind != self.kinds[place]:
                self.kinds[place] = column.kind
                self._content_bytes -= _bytes_of(self.categories[place])
                self.categories[place].update(column.fresh)
                self._content_bytes += _bytes_of(self.categories[place])
                self.version += 1

    def _add(self, name: Label, kind: str, labels: dict[Label, int]) -> None:
        self.index[name] = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.categories.append(labels)
        self._content_bytes += sys.getsizeof(name) + _bytes_of(labels)
        self.version += 1


def _bytes_of(labels: dict[Label, int]) -> int:
    return sys.getsizeof(labels) + sum(map(sys.getsizeof, labels))


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(f"the features are not as they were saved: {complaint}")


def _check_distinct(labels: list[Any], what: str) -> None:
    """Check that all are names or labels of Python's own types, and no two are equal."""
    for label in labels:
        _check(type(label) in (str, int, bool), f"{door.shown(label)} is no {what}")
        _check(what == "label" or type(label) is not bool, f"{door.shown(label)} is no {what}")
        try:
            door.label(label, whole=False) if what == "label" else door.feature_name(label)
        except ValueError:
            _check(False, f"{door.shown(label)} is no {what}")
    _check(len(set(labels)) == len(labels), f"a {what} occurs twice")
