"""Which of the largest rules of a model were divided, removed or changed during an evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, get_args

from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.model_log import ModelLog
from sapwood.evaluate.recorder import Moment, packed, unpacked
from sapwood.formatting import number
from sapwood.inspect.rule_reading import conditions_of, largest_leaves
from sapwood.inspect.tree_views import TreeViews
from sapwood.inspect.view import TreePicture
from sapwood.model import readable_part
from sapwood.tree.layout import LEAF

__all__ = ["RuleEvent", "RuleLog"]

Kind = Literal["divided", "removed", "changed"]
Split = tuple[int, int, float, int]  # kind, feature, threshold, subset

KINDS = get_args(Kind)
WATCHED = 8  # rules, those of most rows
MOST_EVENTS = 500  # the latest


class RuleEvent(NamedTuple):
    """Something that happened to one of the eight largest rules of a model.

    Parameters
    ----------
    row : int
        How many rows were scored when it was noted; it happened since the moment before.
    kind : {"divided", "removed", "changed"}
        The leaf of the rule was split, so that it became several with further conditions; there is
        no such rule any more, as the tree was pruned or replaced; or the mean of the target in its
        rows has moved by more than the deviation.
    rule : str
        Its conditions.
    share : float
        Of the rows that met them before.
    before : float
        The mean of the target in its rows before.
    after : float or None
        The mean of its rows now; None if it was removed. Of a rule that was divided, the mean over
        the rules that it became.
    rules : int
        How many rules there are now in its place.

    Examples
    --------
    >>> print(RuleEvent(3000, "divided", "temp < 12.5", 0.4, 3.25, 3.5, 2))
    temp < 12.5: divided into 2 rules
    >>> print(RuleEvent(3000, "changed", "temp < 12.5", 0.4, 3.25, 8.5, 1))
    temp < 12.5: mean 3.25 → 8.5
    """

    row: int
    kind: Kind
    rule: str
    share: float
    before: float
    after: float | None
    rules: int

    def __str__(self) -> str:
        if self.kind == "divided":
            return f"{self.rule}: divided into {self.rules} rules"
        if self.after is None:
            return f"{self.rule}: removed"
        return f"{self.rule}: mean {number(self.before, 4)} → {number(self.after, 4)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the event in terms of JSON."""
        return self._asdict()


class Known(NamedTuple):
    """What is remembered of a rule until the next moment; a path is its splits and directions."""

    path: tuple[tuple[Split, bool], ...]
    rule: str
    share: float
    mean: float
    deviation: float


class RuleLog(ModelLog):
    """The largest rules of a tree at the last moment, and what has happened to such rules."""

    first, most = 5000, 12

    def __init__(self) -> None:
        super().__init__()
        self._known: list[Known] = []
        self._events: list[RuleEvent] = []

    @staticmethod
    def _is_noted(model: Any) -> bool:
        part = readable_part(model)  # a forest has the rules of another member each time
        return isinstance(part, TreeViews) and not getattr(part, "targets", ())

    @staticmethod
    def _note(rows: int, model: Any) -> int:
        return rows

    def add(self, rows: int, model: Any) -> None:
        """Compare the rules of a model with those of the moment before, if that is due."""
        interval, moments = self.interval, len(self._moments)
        super().add(rows, model)
        if (self.interval, len(self._moments)) != (interval, moments):
            part = readable_part(model)
            picture = part._picture()
            found = (event_of(rows, before, picture) for before in self._known)
            self._events = [*self._events, *(each for each in found if each)][-MOST_EVENTS:]
            self._known = largest_rules(picture, part._features)

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the events so far."""
        return {"rule_events": tuple(self._events)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        state = {"interval": self.interval, "moments": self._moments}
        known = [each._asdict() for each in self._known]
        events = [event.to_dict() for event in self._events]
        return {"rules": packed({**state, "known": known, "events": events})}

    def restored(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a log in a state that `to_arrays` returned; earlier formats have none."""
        made = type(self)()
        if "rules" not in arrays:
            return made
        header = unpacked(arrays["rules"])
        made.interval = validation.whole(header["interval"], "interval", self.first, 2**53)
        lists = [header[name] for name in ("moments", "known", "events")]
        limits = (self.most, WATCHED + 1, MOST_EVENTS + 1)
        for each, limit in zip(lists, limits, strict=True):
            if not isinstance(each, list) or len(each) >= limit:
                raise TypeError("the saved rules are none")
        made._moments = [validation.whole(each, "rows", 1, 2**53) for each in lists[0]]
        made._known = [_saved_rule(each) for each in lists[1]]
        made._events = [_saved_event(each) for each in lists[2]]
        return made


def largest_rules(picture: TreePicture, features: Any) -> list[Known]:
    """Return what is remembered of the largest rules of a tree.

    - `picture`: the tree.
    - `features`: of its rows.
    """
    total, columns = picture.reached[0] or 1.0, picture.columns
    return [
        Known(
            tuple((_split(picture, node), left) for node, left in path),
            " and ".join(map(str, conditions_of(picture, features, path))) or "any row",
            picture.reached[leaf] / total,
            columns["mean"][leaf],
            columns["deviation"][leaf],
        )
        for leaf, path in largest_leaves(picture, WATCHED)
    ]


def event_of(row: int, before: Known, picture: TreePicture) -> RuleEvent | None:
    """Return what has happened to a rule, if anything has.

    - `row`: the number of scored rows.
    - `before`: the rule at the moment before.
    - `picture`: the tree now.
    """
    old = (before.rule, before.share, before.mean)
    node = _node_at(before.path, picture)
    if node is None:
        return RuleEvent(row, "removed", *old, None, 0)
    mean, leaves = picture.below.mean[node], picture.below.leaves[node]
    if leaves > 1:
        return RuleEvent(row, "divided", *old, mean, leaves)
    if abs(mean - before.mean) > before.deviation:
        return RuleEvent(row, "changed", *old, mean, 1)
    return None


def _split(picture: TreePicture, node: int) -> Split:
    columns = picture.columns
    return (
        int(columns["kind"][node]),
        int(columns["feature"][node]),
        float(columns["threshold"][node]),
        int(columns["subset"][node]),
    )


def _node_at(path: Sequence[tuple[Split, bool]], picture: TreePicture) -> int | None:
    """Return the node to which the same splits lead; None if there is none."""
    node = 0
    for split, left in path:
        if picture.columns["kind"][node] == LEAF or _split(picture, node) != split:
            return None
        node = picture.columns["child"][node] + (not left)
    return node


def _saved_rule(saved: Any) -> Known:
    if not isinstance(saved, dict) or saved.keys() != set(Known._fields):
        raise TypeError(f"{validation.shown(saved)} is no saved rule")
    if not isinstance(saved["rule"], str) or not isinstance(saved["path"], list):
        raise TypeError(f"{validation.shown(saved)} is no saved rule")
    numbers = [validation.number(saved[name], name) for name in ("share", "mean", "deviation")]
    return Known(tuple(map(_saved_step, saved["path"])), saved["rule"], *numbers)


def _saved_step(saved: Any) -> tuple[Split, bool]:
    (kind, feature, threshold, subset), left = saved
    whole = [
        validation.whole(each, name, 0, 2**64)
        for name, each in (("kind", kind), ("feature", feature), ("subset", subset))
    ]
    return (whole[0], whole[1], validation.number(threshold, "threshold"), whole[2]), bool(left)


def _saved_event(saved: Any) -> RuleEvent:
    if not isinstance(saved, dict) or saved.keys() != set(RuleEvent._fields):
        raise TypeError(f"{validation.shown(saved)} is no event of a rule")
    if saved["kind"] not in KINDS or not isinstance(saved["rule"], str):
        raise ValueError(f"{validation.shown(saved['kind'])} is no event of a rule")
    after = saved["after"]
    return RuleEvent(
        validation.whole(saved["row"], "row", 1, 2**53),
        saved["kind"],
        saved["rule"],
        validation.number(saved["share"], "share"),
        validation.number(saved["before"], "before"),
        None if after is None else validation.number(after, "after"),
        validation.whole(saved["rules"], "rules", 0, 2**31),
    )
