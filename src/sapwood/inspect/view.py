"""Looking inside a tree: as text, as a table, and in numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.formatting import MOST_LETTERS, number, plain, table
from sapwood.records import Records
from sapwood.tree.layout import CATEGORY, LEAF, NODE_RECORD, NUMBER

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Summary",
    "TreePicture",
    "UnitChange",
    "feature_importances",
    "hints",
    "summary",
    "to_frame",
    "to_records",
    "to_text",
]

FloatArray = NDArray[np.float64]

# A node as the views see it; a leaf also has whether it may still split, and which model predicts.
PICTURE_RECORD = np.dtype([*NODE_RECORD.descr, ("watching", np.bool_), ("model", np.str_, 8)])

KINDS = {LEAF: "leaf", NUMBER: "number", CATEGORY: "category"}
OTHERS = 63  # the code of all categories that a split by codes cannot tell apart
MOST_TARGETS = 6  # in a line of text
IDS = "identifiers"
COUNTERS = "counters"
UNIT_CHANGES = "unit_changes"
COUNTED = 40  # samples that are larger than the one before, and none smaller: some 2,500 rows
MOST_GUIDES = 24  # levels that a line of text is indented by; deeper ones are counted instead


class Limits(NamedTuple):
    """How much of a split is shown: of its threshold, of each name, of its set."""

    digits: int
    letters: int = MOST_LETTERS
    labels: int = 4


class Below(NamedTuple):
    """What the leaves below each node are together; a leaf is below itself."""

    leaves: list[int]
    weight: list[float]
    mean: list[float]


@dataclass(frozen=True, eq=False)
class TreePicture:
    """A tree as the views see it."""

    nodes: Records  # of PICTURE_RECORD; the first is the root
    names: Sequence[str]  # of the features
    categories: Sequence[Sequence[str]]  # of each feature in the order of their codes
    levels: Mapping[int, FloatArray] = field(default_factory=dict)  # of categories of many
    identifiers: Sequence[str] = ()  # features that count as missing, as their values never repeat
    facts: NDArray[Any] | None = None  # of FACTS_RECORD: what is known of each feature
    targets: Sequence[str] = ()  # the names of several
    of_targets: Records | None = None  # of several, by node and target: TARGET_NODE
    inherited: FloatArray | None = None  # the weight that each leaf had when it was made
    learned: float = 0.0  # the weight of all rows
    flags: Mapping[str, str] = field(default_factory=dict)  # of missing values: whose each is

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The nodes as lists, which Python reads faster than records."""
        return {name: self.nodes[name].tolist() for name in self.nodes.dtype.names or ()}

    @cached_property
    def below(self) -> Below:
        """The leaves below each node."""
        kind, child = self.columns["kind"], self.columns["child"]
        found = Below([1] * len(kind), self.columns["weight"][:], self.columns["mean"][:])
        for node, _ in reversed(list(self.walk())):
            if kind[node] != LEAF:
                left, right = child[node], child[node] + 1
                weight = found.weight[left] + found.weight[right]
                share = found.weight[right] / weight if weight else 0.5
                found.leaves[node] = found.leaves[left] + found.leaves[right]
                found.weight[node] = weight
                found.mean[node] = found.mean[left] * (1 - share) + found.mean[right] * share
        return found

    @cached_property
    def reached(self) -> list[float]:
        """The weight of the rows that reached each node, an estimate; the root has that of all.

        A leaf counts its own rows and those by which its parent split. The rows that nodes further
        up had learned before they split are divided among their children by the same proportions.
        """
        if self.inherited is None:
            return self.below.weight
        kind, child, weight = (self.columns[name] for name in ("kind", "child", "weight"))
        inherited, older = self.inherited.tolist(), [0.0] * len(kind)
        order = [node for node, _ in self.walk()]
        for node in reversed(order):
            if kind[node] != LEAF:
                below = inherited[child[node]] + inherited[child[node] + 1]
                inherited[node] = max(0.0, weight[node] - below) if node else 0.0
        for node in order:
            if kind[node] != LEAF:
                left, right = child[node], child[node] + 1
                whole = inherited[left] + inherited[right]
                share = inherited[left] / whole if whole > 0 else 0.5
                before = older[node] + inherited[node]
                older[left], older[right] = before * share, before * (1.0 - share)
        found = [own + more for own, more in zip(weight, older, strict=True)]
        # Rows that lack the feature of a split are not known to its children.
        total = sum(own for own, each in zip(found, kind, strict=True) if each == LEAF)
        found = [own * (self.learned / total if total > 0 else 1.0) for own in found]
        for node in reversed(order):
            if kind[node] != LEAF:
                found[node] = found[child[node]] + found[child[node] + 1]
        return found

    def walk(self, max_depth: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield each node and its depth: a node before its children, left before right."""
        kind, child = self.columns["kind"], self.columns["child"]
        waiting = [(0, 0)]
        while waiting:
            node, depth = waiting.pop()
            yield node, depth
            if kind[node] != LEAF and depth != max_depth:
                waiting += [(child[node] + 1, depth + 1), (child[node], depth + 1)]

    def is_left(self, node: int) -> bool:
        """Whether a node is the left child of its parent."""
        return bool(self.columns["child"][self.columns["parent"][node]] == node)


def to_text(picture: TreePicture, max_depth: int | None = None, digits: int = 4) -> str:
    """Return a tree as indented text, with one line for each node.

    - `max_depth`: nodes at this depth stand for all that is below them; the root is at depth 0.
    - `digits`: significant digits of a number. Thresholds get two more.

    Examples
    --------
    >>> print(to_text(sample()))
    temp < 12.5  (missing: no)
    ├─ yes: 3.25  (weight 120, linear)
    └─ no:  city in {Oslo, Rome}  (unseen or missing: yes)
       ├─ yes: 8  (weight 60, mean)
       └─ no:  10.5  (weight 20, mean, not watching)
    >>> print(to_text(sample(), max_depth=1))
    temp < 12.5  (missing: no)
    ├─ yes: 3.25  (weight 120, linear)
    └─ no:  … 2 leaves: 8.625  (weight 80)
    """
    check_limits(max_depth, digits)
    lines: list[str] = []
    guides: list[str] = []  # what stands before the children of the last node at each depth
    for node, depth in picture.walk(max_depth):
        line, guide = "", ""
        if depth:
            left, before = picture.is_left(node), guides[depth - 1]
            hidden = depth - 1 - MOST_GUIDES
            line = f"(+{hidden}) {before}" if hidden > 0 else before
            line += "├─ yes: " if left else "└─ no:  "
            guide = (before + ("│  " if left else "   "))[-3 * MOST_GUIDES :]
        guides[depth:] = [guide]
        lines.append(line + _line(picture, node, depth == max_depth, digits))
    return "\n".join(lines)


def _line(picture: TreePicture, node: int, at_end: bool, digits: int) -> str:
    columns, below = picture.columns, picture.below
    weight, mean = number(below.weight[node], digits), _mean(picture, node, digits)
    if columns["kind"][node] == LEAF:
        if node == 0 and below.weight[0] == 0:
            return "no rows learned yet"
        pause = "" if columns["watching"][node] else ", not watching"
        return f"{mean}  (weight {weight}, {columns['model'][node]}{pause})"
    if at_end:
        return f"… {below.leaves[node]} leaves: {mean}  (weight {weight})"
    return f"{question(picture, node, Limits(digits + 2))}  ({missing_way(picture, node)})"


def _mean(picture: TreePicture, node: int, digits: int) -> str:
    """Return the mean y of a node as text; of several targets, those of the first few."""
    if picture.of_targets is None:
        return number(picture.below.mean[node], digits)
    means = [
        f"{plain(name, MOST_LETTERS)} {number(float(mean), digits)}"
        for name, mean in zip(picture.targets, picture.of_targets["mean"][node], strict=True)
    ]
    rest = len(means) - MOST_TARGETS
    return ", ".join(means[:MOST_TARGETS] + ([f"+{rest} more"] if rest > 0 else []))


def to_records(picture: TreePicture) -> dict[str, list[Any]]:
    """Return the nodes as columns; what a node has not is -1, NaN or None.

    Examples
    --------
    >>> records = to_records(sample())
    >>> records["condition"][:3]
    ['root', 'temp < 12.5', 'temp >= 12.5 or missing']
    >>> records["left"], records["gain"]
    ([1, -1, 3, -1, -1], [900.0, nan, 75.0, nan, nan])
    """
    columns = picture.columns
    kinds, names = columns["kind"], picture.names

    def where(kinds_wanted: tuple[int, ...], values: Sequence[Any], otherwise: Any) -> list[Any]:
        pairs = zip(kinds, values, strict=True)
        return [value if kind in kinds_wanted else otherwise for kind, value in pairs]

    leaf, split = (LEAF,), (NUMBER, CATEGORY)
    features = where(split, columns["feature"], None)
    return {
        "node": list(range(len(kinds))),
        "parent": columns["parent"][:],
        "depth": columns["depth"][:],
        "kind": [KINDS[kind] for kind in kinds],
        "feature": [None if feature is None else names[feature] for feature in features],
        "condition": [condition(picture, node) for node in range(len(kinds))],
        "threshold": where((NUMBER,), columns["threshold"], math.nan),
        "left": where(split, columns["child"], -1),
        "right": where(split, [child + 1 for child in columns["child"]], -1),
        "weight": columns["weight"][:],
        "mean": columns["mean"][:],
        "deviation": columns["deviation"][:],
        "gain": where(split, columns["gain"], math.nan),
        "model": where(leaf, columns["model"], None),
        "watching": where(leaf, columns["watching"], False),
    } | _records_of_targets(picture)


def _records_of_targets(picture: TreePicture) -> dict[str, list[Any]]:
    """Return what a tree of several targets knows of each, as columns such as "mean of a"."""
    if picture.of_targets is None:
        return {}
    return {
        f"{name} of {target}": picture.of_targets[name][:, place].tolist()
        for place, target in enumerate(picture.targets)
        for name in ("weight", "mean", "deviation", "gain")
    }


def to_frame(picture: TreePicture) -> "pd.DataFrame":
    """Return the nodes as a pandas DataFrame, one row a node; see `to_records`.

    Examples
    --------
    >>> to_frame(sample()).query("kind == 'leaf'")["mean"].to_dict()
    {1: 3.25, 3: 8.0, 4: 10.5}
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "to_frame needs pandas, which is not installed: run `pip install pandas`, "
            "or call to_text"
        ) from error
    return pd.DataFrame(to_records(picture))


def feature_importances(picture: TreePicture, lately: bool = True) -> dict[str, float]:
    """Return the permutation importance of each feature; they sum to 1.

    Where nothing is known of that, it is the share of each in the merit that all splits gained.
    They sum to 1; without a split, all are 0.

    - `lately`: whether recent rows have larger weights; if not, all rows have the same.

    Examples
    --------
    >>> {name: round(share, 3) for name, share in feature_importances(sample()).items()}
    {'temp': 0.923, 'city': 0.077}
    """
    if picture.facts is not None:
        prefix = "late_" if lately else ""
        weight, cost = picture.facts[f"{prefix}weight"], picture.facts[f"{prefix}cost"]
        costs = np.maximum(cost, 0.0) / np.where(weight > 0, weight, 1.0)
        most = costs.max(initial=0.0)
        if most > 0:
            shares = costs / most
            return of_columns(picture, shares / shares.sum())
    inner = picture.nodes[picture.nodes["kind"] != LEAF]
    largest = inner["gain"].max(initial=0.0)
    if largest <= 0:
        return of_columns(picture, np.zeros(len(picture.names)))
    gains = np.bincount(inner["feature"], inner["gain"] / largest, minlength=len(picture.names))
    return of_columns(picture, gains / gains.sum())


def of_columns(picture: TreePicture, shares: FloatArray) -> dict[str, float]:
    """Return the share of each feature; that of a flag is added to its column's."""
    found = dict(zip(picture.names, shares.tolist(), strict=True))
    for flag, owner in picture.flags.items():
        found[owner] += found.pop(flag)
    return found


class UnitChange(NamedTuple):
    """A detected change of units, of a column or of y.

    Examples
    --------
    >>> print(UnitChange(20_131, "x3", 1000.0, 0.0))
    x3: in other units, noticed at row 20131: 1000 times what it was
    >>> print(UnitChange(900, None, 1.0, -273.15))
    y: in other units, noticed at row 900: what it was - 273.15
    """

    row: int  # rows that had been learned when it was followed
    column: str | None  # a feature; None for y
    scale: float  # values from then on are scale times those of before, plus shift
    shift: float

    def __str__(self) -> str:
        name = "y" if self.column is None else plain(self.column, MOST_LETTERS)
        times = "" if self.scale == 1.0 else f"{number(self.scale, 6)} times "
        sign = "-" if self.shift < 0.0 else "+"
        plus = "" if self.shift == 0.0 else f" {sign} {number(abs(self.shift), 6)}"
        return f"{name}: in other units, noticed at row {self.row}: {times}what it was{plus}"


class Summary(NamedTuple):
    """The size of a tree in numbers: what it learned, what it consists of, what it occupies."""

    rows: int
    weight: float
    features: int
    nodes: int
    leaves: int
    watching: int  # leaves that may still split
    depth: int  # of the deepest leaf; the root is at 0
    nbytes: int
    identifiers: tuple[str, ...] = ()  # features that count as missing: their values never repeat
    counters: tuple[str, ...] = ()  # the first to be split on, if it has only ever risen
    targets: int = 1  # columns of y
    unit_changes: tuple[UnitChange, ...] = ()  # that the tree has followed, the oldest first

    def __str__(self) -> str:
        words = (IDS, COUNTERS, UNIT_CHANGES, *(("targets",) if self.targets == 1 else ()))
        rows = [
            [name, number(value, 15)] for name, value in self._asdict().items() if name not in words
        ]
        hints = [*_hints(self.counters, self.identifiers), *map(str, self.unit_changes)]
        return "\n".join([table(rows), *hints])


def summary(
    picture: TreePicture,
    *,
    rows: int,
    weight: float,
    nbytes: int,
    targets: int = 1,
    unit_changes: Sequence[UnitChange] = (),
) -> Summary:
    """Return the size of a tree in numbers; the caller adds rows and memory.

    Examples
    --------
    >>> print(summary(sample(), rows=200, weight=200.0, nbytes=4096))
    rows       200
    weight     200
    features     2
    nodes        5
    leaves       3
    watching     2
    depth        2
    nbytes    4096
    """
    nodes = picture.nodes
    leaves = nodes[nodes["kind"] == LEAF]
    watching = int(np.count_nonzero(leaves["watching"]))
    depth = int(nodes["depth"].max())
    return Summary(
        rows,
        weight,
        len(picture.names) - len(picture.flags),
        len(nodes),
        len(leaves),
        watching,
        depth,
        nbytes,
        tuple(picture.identifiers),
        _counters(picture),
        targets,
        tuple(unit_changes),
    )


def hints(picture: TreePicture) -> list[str]:
    """Return what is worth knowing of features that are hardly meant to be predicted from.

    Examples
    --------
    >>> hints(sample())
    []
    """
    return _hints(_counters(picture), picture.identifiers)


def _hints(counters: Sequence[str], identifiers: Sequence[str]) -> list[str]:
    found = [
        f"{plain(name, MOST_LETTERS)}: it only rises and is split on first, so that what comes is "
        "always beyond what was seen; if it is a counter, leave it out, or name it in no_splits"
        for name in counters
    ]
    return found + [
        f"{plain(name, MOST_LETTERS)}: its values hardly ever repeat, it is left out"
        for name in identifiers
    ]


def _counters(picture: TreePicture) -> tuple[str, ...]:
    """Return the feature at the root, if it has risen in many samples and never fallen."""
    feature = int(picture.nodes["feature"][0])
    if picture.facts is None or picture.nodes["kind"][0] != NUMBER:
        return ()
    if picture.facts["rises"][feature] < COUNTED or feature in picture.levels:
        return ()
    return (picture.names[feature],)


def question(
    picture: TreePicture, node: int, limits: Limits | None = None, left: bool = True
) -> str:
    """Return the condition of a split, or its opposite; without limits, in full.

    A split of a high-cardinality category compares its target encoding with a threshold;
    the number of categories on each side is the present one.
    """
    columns = picture.columns
    feature = columns["feature"][node]
    name = plain(picture.names[feature], limits and limits.letters)
    if columns["kind"][node] == NUMBER:
        threshold = number(columns["threshold"][node], limits and limits.digits)
        if feature in picture.levels:
            levels = picture.levels[feature]
            below = int(np.count_nonzero(levels < columns["threshold"][node]))
            those = below if left else len(levels) - below
            where = "below" if left else "above"
            return f"{name}: those {where} {threshold} ({those:,} of {len(levels):,})"
        if picture.facts is not None and picture.facts["decimals"][feature] <= 0:
            # All values are whole, or on a coarser grid, and the threshold is the next of them.
            step = 10.0 ** -picture.facts["decimals"][feature]
            largest = number(columns["threshold"][node] - step, limits and limits.digits)
            return f"{name} {'<=' if left else '>'} {largest}"
        return f"{name} {'<' if left else '>='} {threshold}"
    known, subset = picture.categories[feature], columns["subset"][node]
    # Codes that no label has yet are those of categories that the split has not seen.
    named = [*range(min(len(known), OTHERS)), *([OTHERS] if len(known) == OTHERS else [])]
    codes = [code for code in named if subset >> code & 1]
    most = len(codes) if limits is None or len(codes) <= limits.labels else limits.labels - 1
    labels = [
        plain(known[code], limits and limits.letters) if code < len(known) else "others"
        for code in codes[: max(most, 1)]
    ]
    if len(labels) < len(codes):
        labels.append(f"+{len(codes) - len(labels)} more")
    return f"{name} {'in' if left else 'not in'} {{{', '.join(labels)}}}"


def condition(picture: TreePicture, node: int, limits: Limits | None = None) -> str:
    """Return what holds for the rows that come to a node from its parent."""
    if node == 0:
        return "root"
    parent, left = picture.columns["parent"][node], picture.is_left(node)
    text = question(picture, parent, limits, left)
    if left != bool(picture.columns["missing_left"][parent]):
        return text
    number_split = picture.columns["kind"][parent] == NUMBER
    return text + (" or missing" if number_split else ", unseen or missing")


def missing_way(picture: TreePicture, node: int) -> str:
    """Return where a split sends the rows that do not answer it."""
    who = "missing" if picture.columns["kind"][node] == NUMBER else "unseen or missing"
    return f"{who}: {'yes' if picture.columns['missing_left'][node] else 'no'}"


def check_limits(max_depth: int | None, digits: int) -> None:
    """Raise ValueError if these are not what the views take."""
    if max_depth is not None:
        validation.whole(max_depth, "max_depth", 0, 2**31)
    validation.whole(digits, "digits", 1, 15)


def sample() -> TreePicture:
    """Return a small tree, for examples."""
    nodes = np.zeros(5, PICTURE_RECORD)
    nodes["kind"] = NUMBER, LEAF, CATEGORY, LEAF, LEAF
    nodes["feature"][2], nodes["subset"][2], nodes["threshold"][0] = 1, 0b101, 12.5
    nodes["child"], nodes["parent"] = (1, 0, 3, 1, 2), (-1, 0, 0, 2, 2)
    nodes["depth"], nodes["missing_left"] = (0, 1, 1, 2, 2), (0, 0, 1, 0, 0)
    nodes["weight"], nodes["mean"] = (100, 120, 40, 60, 20), (5, 3.25, 8, 8, 10.5)
    nodes["deviation"], nodes["gain"] = (3, 0.5, 1.5, 0.25, 0.75), (900, 0, 75, 0, 0)
    nodes["watching"], nodes["model"] = (0, 1, 0, 1, 0), ("", "linear", "", "mean", "mean")
    return TreePicture(nodes, ["temp", "city"], [[], ["Oslo", "Bonn", "Rome"]])
