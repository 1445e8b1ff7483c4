"""What a tree knows of its columns: their names, their kinds, and the codes of categories."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from sapwood import validation
from sapwood.rows import encoder, missing_flags
from sapwood.rows._dict_row import FeatureTable
from sapwood.rows.column import (
    CATEGORY,
    IDENTIFIER,
    MISSING,
    MOST_LABELS,
    NUMBER,
    OTHERS,
    UNKNOWN,
    Column,
)
from sapwood.rows.encoder import MAX_FEATURES, EncodedRows
from sapwood.rows.known_features import KnownFeatures
from sapwood.validation import FloatArray, Label

if TYPE_CHECKING:
    from sapwood.schema import Schema

__all__ = [
    "CATEGORY",
    "IDENTIFIER",
    "MAX_FEATURES",
    "MAX_TARGETS",
    "MISSING",
    "MOST_LABELS",
    "NUMBER",
    "OTHERS",
    "UNKNOWN",
    "Features",
    "KnownFeatures",
    "checked_names",
    "labels_within",
]

KINDS = (NUMBER, CATEGORY, UNKNOWN, IDENTIFIER, MISSING)
# Where memory is limited, a feature has a label of its own for each so many bytes, and at least
# this number.
BYTES_PER_LABEL = 4096
LEAST_LABELS = OTHERS + 1
HEADER = ("names", "kinds", "labels", "categorical")
TARGETS = "targets"  # of several; there is no such field if there is one
MAX_TARGETS = 1024
# Those of attributes for flags do not count, as in files of before.
OF_FLAGS = 48


def labels_within(max_bytes: int | None) -> int:
    """Return how many labels of a feature may have codes of their own within a limit of memory.

    Examples
    --------
    >>> labels_within(None), labels_within(1_000_000), labels_within(20_000)
    (65536, 244, 64)
    """
    if not max_bytes:
        return MOST_LABELS
    return min(max(max_bytes // BYTES_PER_LABEL, LEAST_LABELS), MOST_LABELS)


def checked_names(names: Iterable[Label], parameter: str) -> tuple[Label, ...]:
    """Return the names of features that a parameter lists, in a fixed order.

    - Raises ValueError if they are no list of names.

    Examples
    --------
    >>> checked_names(["sold", 3, "day", "sold"], "categorical")
    (3, 'day', 'sold')
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise ValueError(f"{parameter} = {validation.shown(names)}: a list of names is expected")
    found = frozenset(validation.feature_name(name) for name in names)
    if len(found) > MAX_FEATURES:
        raise ValueError(f"{parameter} has more than {MAX_FEATURES} names")
    return _in_order(found)


def _in_order(names: frozenset[Label]) -> tuple[Label, ...]:
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


class Features(FeatureTable):
    """The features of a stream, in the order of their first appearance.

    A feature's kind is fixed by its first value that is not missing: a string makes it a category,
    a number or bool a number. Labels have codes in the order in which they appear; ``True``, ``1``
    and ``1.0`` are one label. The 64th makes the feature one of many categories. From `most_labels` on,
    new ones share a quarter as many codes by their hash (FNV-1a), and are not stored; where
    `most_labels` is less than 65,536, so do labels of many that have more than 64 characters. If
    the first 16,384 labels hardly ever repeat, the feature is one of ids: it counts as missing
    from then on, and its labels are forgotten. Where `most_labels` is
    less, from 1,024 on, so many labels decide it.

    - `categorical`: names of features that are categories although their values may be numbers.
    - `most_labels`: how many labels of a feature may have codes of their own. With 63, no feature
      becomes one of many categories: all further labels have the code 63.
    - `kinds`: unknown is a feature that was missing in every row so far.
    - `categories`: the code of each label; empty for numbers.

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

    __slots__ = ("_schema", "categorical", "flagging", "most_labels")

    def __init__(self, categorical: Iterable[Label] = (), most_labels: int = MOST_LABELS):
        self.categorical = frozenset(checked_names(categorical, "categorical"))
        self.most_labels = most_labels
        self.flagging = False  # whether columns get flags of missing values
        self.schema = None
        self.known = KnownFeatures()

    @property
    def schema(self) -> "Schema | None":
        """How the columns of rows become features; None if rows are features already."""
        return self._schema

    @schema.setter
    def schema(self, schema: "Schema | None") -> None:
        self._schema = schema
        self.encoding = schema if schema is not None and schema.converting else None

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
        return _in_order(self.categorical)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features):
            return NotImplemented
        return self.to_header() == other.to_header()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kinds = KINDS if self.known.flags else KINDS[:-1]
        counts = ", ".join(f"{self.kinds.count(kind)} {kind}" for kind in kinds)
        return f"<Features: {counts}>"

    def read(self, X: Any, learn: bool) -> EncodedRows:
        """Read many rows, and change nothing yet.

        - `X`: rows of numbers, strings and missing values (NaN, None, NA, masked): an array of two
          dimensions whose columns are the features in their order (named 0, 1, … if there are none
          yet); or columns by name, as a mapping or a frame of pandas, polars or pyarrow, that may
          lack features and bring new ones.
        - `learn`: whether features and labels that are new get a column and a code. If not, they
          count as missing.
        - Returns `matrix`, an array of doubles in C order with a column for each feature, the new
          ones at the end, which shares no memory with X; and `commit()`, to register what is new.
        - Raises ValueError if X has another shape, or a value is neither finite nor missing, or of
          another kind than its feature; the message has its name and row.
        """
        plan = encoder.read(self, X, learn)
        if plan.before.flags or (learn and self.flagging):
            return missing_flags.completed(self, plan, learn and self.flagging)
        return plan

    def read_one(self, x: Any, learn: bool) -> EncodedRows:
        """Read one row, and change nothing yet: as `read`, of a mapping of names to values.

        Examples
        --------
        >>> Features().read_one({"age": float("inf")}, learn=True)
        Traceback (most recent call last):
        ...
        ValueError: x['age'] = inf must be finite; use NaN or None for a missing value
        """
        plan = encoder.read_one(self, x, learn)
        if plan.before.flags or (learn and self.flagging):
            return missing_flags.completed(self, plan, learn and self.flagging)
        return plan

    def matrix(self, X: Any, learn: bool) -> FloatArray:
        """Read many rows and register at once what is new; see `read`."""
        plan = self.read(X, learn)
        plan.commit()
        return plan.matrix

    @property
    def all_numbers(self) -> bool:
        """Whether there are features, and all are known to be numbers."""
        kinds = self.known.kinds
        return bool(kinds) and kinds.count(NUMBER) == len(kinds)

    @property
    def nbytes(self) -> int:
        """Bytes that all names, labels and tables occupy."""
        declared = sum(map(sys.getsizeof, self.categorical)) + sys.getsizeof(self.categorical)
        return self.known.nbytes + declared + sys.getsizeof(self) - OF_FLAGS

    def copy(self) -> Self:
        """Return features that are equal and share nothing that changes."""
        copied = type(self)(self.categorical, self.most_labels)
        copied.schema, copied.flagging = self.schema, self.flagging
        copied.set_gaps(self.gaps, self.flag_due)
        copied.known = self.known._copy()
        copied.known.tables = [dict(table) for table in self.categories]  # as each adds to its own
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_header, (self.to_header(), self.most_labels)

    def to_header(self) -> dict[str, Any]:
        """Return all that is known, in terms of JSON.

        Examples
        --------
        >>> features = Features(categorical=["day"])
        >>> _ = features.matrix({"day": [6, 7]}, learn=True)
        >>> features.to_header()
        {'names': ['day'], 'kinds': ['category'], 'labels': [[6, 7]], 'categorical': ['day']}
        """
        header = {
            "names": list(self.names),
            "kinds": list(self.kinds),
            "labels": [list(table) for table in self.categories],
            "categorical": list(self.declared),
        }
        return header | ({TARGETS: list(self.known.targets)} if self.known.targets else {})

    @classmethod
    def from_header(cls, header: Any, most_labels: int = MOST_LABELS) -> Self:
        """Return the features that a header describes.

        - `header`: what `to_header` returned; nothing of it is trusted.
        - `most_labels`: how many labels of a feature may have codes of their own.
        - Raises ValueError if there is anything wrong with it.
        """
        good = type(header) is dict and set(header) - {TARGETS} == set(HEADER)
        _check(good, "fields are wrong")
        names, kinds, labels, categorical = (header[field] for field in HEADER)
        _check(all(type(header[field]) is list for field in header), "a field is no list")
        targets = header.get(TARGETS)
        _check(targets is None or 1 < len(targets) <= MAX_TARGETS, "targets are too many or few")
        _check_distinct([*(targets or ())], "target")
        _check(len(names) == len(kinds) == len(labels), "the lengths of lists differ")
        _check(len(names) <= MAX_FEATURES, "there are too many features")
        _check_distinct([*names], "name")
        _check_distinct([*categorical], "declared name")
        features = cls(categorical, most_labels)
        known = KnownFeatures()
        for name, kind, own in zip(names, kinds, labels, strict=True):
            _check(type(kind) is str and kind in KINDS, f"{validation.shown(kind)} is no kind")
            _check(type(own) is list and len(own) <= most_labels, "labels are wrong")
            _check(kind == CATEGORY or not own, f"{validation.shown(name)} has labels")
            declared = name in features.categorical
            _check(kind in (CATEGORY, IDENTIFIER) or not declared, "a kind is wrong")
            _check_distinct(own, "label")
            known.add(name, kind, {label: code for code, label in enumerate(own)})
        try:
            missing_flags.flags_of(known.names, known.kinds)
        except ValueError as error:
            _check(False, str(error))
        features.known = known.and_targets(tuple(targets or ()))
        return features

    def _column(self, name: Label, learn: bool) -> Column:
        """Return what is known of a feature, for a reading."""
        table: dict[Label, int]
        place = self.index.get(name)
        if place is None:
            kind, table, count = CATEGORY if name in self.categorical else UNKNOWN, {}, 0
        else:
            known = self.known
            kind, table, count = known.kinds[place], known.tables[place], known.counts[place]
        return Column(name, kind, known=table, count=count, learn=learn, most=self.most_labels)


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(f"the features are not as they were saved: {complaint}")


def _check_distinct(labels: list[Any], what: str) -> None:
    """Check that all are names or labels of Python's own types, and no two are equal."""
    for label in labels:
        _check(type(label) in (str, int, bool), f"{validation.shown(label)} is no {what}")
        _check(
            what == "label" or type(label) is not bool, f"{validation.shown(label)} is no {what}"
        )
        try:
            (validation.label if what == "label" else validation.feature_name)(label)
        except ValueError:
            _check(False, f"{validation.shown(label)} is no {what}")
    _check(len(set(labels)) == len(labels), f"a {what} occurs twice")
