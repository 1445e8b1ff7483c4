"""What a tree knows of its columns: their names, their kinds, and the codes of categories."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Self

from sapwood import door
from sapwood.door import FloatArray, Label
from sapwood.rows import encoder
from sapwood.rows._dict_row import FeatureTable
from sapwood.rows.column import CATEGORY, NUMBER, OTHERS, UNKNOWN, Column
from sapwood.rows.encoder import MAX_FEATURES, Plan

__all__ = ["CATEGORY", "MAX_FEATURES", "NUMBER", "OTHERS", "UNKNOWN", "Features", "Known"]

KINDS = (NUMBER, CATEGORY, UNKNOWN)
HEADER = ("names", "kinds", "labels", "categorical")
SHARED_INTS = 257  # from 0 on, Python keeps but one of each


class Known:
    """What is known of features at one moment; it never changes.

    Attributes
    ----------
    names, index, kinds, categories
        As those of `Features`.
    version : int
        How many changes have led here.
    content_bytes : int
        Bytes of names, twice, and of labels. For the row reader holds on to the keys by which rows
        last named the features, which may be strings of their own.
    """

    __slots__ = ("categories", "content_bytes", "index", "kinds", "names", "version")

    def __init__(self) -> None:
        self.names: list[Label] = []
        self.index: dict[Label, int] = {}
        self.kinds: list[str] = []
        self.categories: list[dict[Label, int]] = []
        self.version = 0
        self.content_bytes = 0

    def and_columns(self, columns: Sequence[Column]) -> "Known":
        """Return what is known once some columns are learned: itself if they bring nothing new."""
        news = [column for column in columns if column.learn and self._is_news(column)]
        if not news:
            return self
        known = Known()
        known.names, known.index = list(self.names), dict(self.index)
        known.kinds, known.categories = list(self.kinds), list(self.categories)
        known.version, known.content_bytes = self.version, self.content_bytes
        for column in news:
            place = known.index.get(column.name)
            if place is None:
                known.add(column.name, column.kind, dict(column.fresh))
                continue
            known.kinds[place] = column.kind
            known.content_bytes -= _bytes_of(known.categories[place])
            known.categories[place] = {**known.categories[place], **column.fresh}
            known.content_bytes += _bytes_of(known.categories[place])
            known.version += 1
        return known

    def _is_news(self, column: Column) -> bool:
        place = self.index.get(column.name)
        return place is None or bool(column.fresh) or column.kind != self.kinds[place]

    def add(self, name: Label, kind: str, labels: dict[Label, int]) -> None:
        """Add a feature; only while nobody else sees this object."""
        self.index[name] = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.categories.append(labels)
        self.content_bytes += 2 * sys.getsizeof(name) + _bytes_of(labels)
        self.version += 1

    @property
    def nbytes(self) -> int:
        """Bytes that all names, labels and tables occupy, at the most; whatever led here."""
        count = len(self.names)
        places = max(0, count - SHARED_INTS) * sys.getsizeof(MAX_FEATURES)
        lists = 3 * (sys.getsizeof([]) + 8 * (count + count // 8 + 6))
        return self.content_bytes + places + lists + _dict_bytes(count) + sys.getsizeof(self)


class Features(FeatureTable):
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

    __slots__ = ("categorical",)

    def __init__(self, categorical: Iterable[Label] = ()):
        if isinstance(categorical, str | bytes) or not isinstance(categorical, Iterable):
            raise ValueError(
                f"categorical = {door.shown(categorical)}: a list of names is expected"
            )
        self.categorical = frozenset(door.feature_name(name) for name in categorical)
        if len(self.categorical) > MAX_FEATURES:
            raise ValueError(f"categorical has more than {MAX_FEATURES} names")
        self.known = Known()

    @property
    def names(self) -> list[Label]:
        """The features."""
        return self.known.names

    @property
    def index(self) -> dict[Label, int]:
        """The column of each name."""
        return self.known.index

    @property
    def kinds(self) -> list[str]:
        """What each feature is."""
        return self.known.kinds

    @property
    def categories(self) -> list[dict[Label, int]]:
        """The code of each label."""
        return self.known.categories

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self.known.version

    @property
    def declared(self) -> tuple[Label, ...]:
        """The names that were declared to be categories, in a fixed order."""
        return tuple(sorted(self.categorical, key=lambda name: (isinstance(name, str), name)))

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
        return encoder.read(self, X, learn)

    def read_one(self, x: Any, learn: bool) -> Plan:
        """Read one row, and change nothing yet: as `read`, of a mapping of names to values.

        Examples
        --------
        >>> Features().read_one({"age": float("inf")}, learn=True)
        Traceback (most recent call last):
        ...
        ValueError: x['age'] = inf must be finite; use NaN or None for a missing value
        """
        return encoder.read_one(self, x, learn)

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
        declared = sum(map(sys.getsizeof, self.categorical)) + sys.getsizeof(self.categorical)
        return self.known.nbytes + declared + sys.getsizeof(self)

    def copy(self) -> Self:
        """Return features that are equal and share nothing that changes."""
        twin = type(self)(self.categorical)
        twin.known = self.known  # which never changes
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_header, (self.to_header(),)

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
            "categorical": list(self.declared),
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
        known = Known()
        for name, kind, own in zip(names, kinds, labels, strict=True):
            _check(type(kind) is str and kind in KINDS, f"{door.shown(kind)} is no kind")
            _check(type(own) is list and len(own) <= OTHERS, "labels are wrong")
            _check(kind == CATEGORY or not own, f"{door.shown(name)} has labels")
            _check(kind == CATEGORY or name not in features.categorical, "a kind is wrong")
            _check_distinct(own, "label")
            known.add(name, kind, {label: code for code, label in enumerate(own)})
        features.known = known
        return features

    def _column(self, name: Label, learn: bool) -> Column:
        """Return what is known of a feature, for a reading."""
        declared = name in self.categorical
        place = self.index.get(name)
        if place is None:
            return Column(name, CATEGORY if declared else UNKNOWN, {}, declared, learn)
        return Column(name, self.kinds[place], self.categories[place], declared, learn)


def _bytes_of(labels: dict[Label, int]) -> int:
    return _dict_bytes(len(labels)) + sum(map(sys.getsizeof, labels))


def _dict_bytes(entries: int) -> int:
    """Return what a dict of so many entries occupies at the most, in whatever order it grew.

    It has up to three times as many places, a power of two of them, each with up to four bytes,
    and room for two thirds as many entries.
    """
    places = 8
    while places < 3 * entries:
        places *= 2
    return sys.getsizeof({}) + 40 + places * (1 if places <= 256 else 4) + 16 * places


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
