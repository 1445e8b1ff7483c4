"""Which of the largest rules of a model were divided, removed or changed during an evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from sapwood import validation
from sapwood.evaluate.model_log import ModelLog
from sapwood.evaluate.recorder import Moment, packed, unpacked
from sapwood.formatting import number
from sapwood.inspect.rules import Condition, Rule
from sapwood.inspect.tree_views import TreeViews
from sapwood.model import readable_part

__all__ = ["RuleEvent", "RuleLog"]

Kind = Literal["divided", "removed", "changed"]

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
        The rule became several with further conditions; there is no such rule any more, as the tree
        was pruned or replaced; or the mean of its rows has moved by more than its error.
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


class _Known(NamedTuple):
    """What is remembered of a rule until the next moment."""

    conditions: tuple[Condition, ...]
    share: float
    mean: float
    error: float

    @classmethod
    def of(cls, rule: Rule) -> "_Known":
        return cls(rule.conditions, rule.share, rule.mean, rule.error)


class RuleLog(ModelLog):
    """The largest rules of a model at the last moment, and what has happened to such rules."""

    first, most = 2500, 16

    def __init__(self) -> None:
        super().__init__()
        self._known: list[_Known] = []
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
            self._compare(rows, readable_part(model).to_rules())

    def _compare(self, row: int, rules: Sequence[Rule]) -> None:
        found = (event_of(row, before, rules) for before in self._known)
        self._events = [*self._events, *(each for each in found if each)][-MOST_EVENTS:]
        self._known = [_Known.of(rule) for rule in rules[:WATCHED]]

    def results(self, end: Moment) -> dict[str, Any]:
        """Return the events so far."""
        return {"rule_events": tuple(self._events)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state, to be saved."""
        known = [
            {**each._asdict(), "conditions": [own.to_dict() for own in each.conditions]}
            for each in self._known
        ]
        events = [event.to_dict() for event in self._events]
        state = {"interval": self.interval, "moments": self._moments}
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


def event_of(row: int, before: _Known, rules: Sequence[Rule]) -> RuleEvent | None:
    """Return what has happened to a rule, if anything has.

    Parameters
    ----------
    row : int
        How many rows were scored.
    before : _Known
        The rule at the moment before.
    rules : sequence of Rule
        All rules now.
    """
    words = " and ".join(map(str, before.conditions)) or "any row"
    old = (words, before.share, before.mean)
    own = [rule for rule in rules if _is_same(before.conditions, rule.conditions)]
    if own:
        mean = own[0].mean
        if abs(mean - before.mean) > before.error:
            return RuleEvent(row, "changed", *old, mean, 1)
        return None
    parts = [rule for rule in rules if _is_narrower(rule.conditions, before.conditions)]
    if len(parts) < 2:
        return RuleEvent(row, "removed", *old, None, 0)
    means, weights = [rule.mean for rule in parts], [rule.weight for rule in parts]
    mean = float(np.average(means, weights=weights if sum(weights) > 0 else None))
    return RuleEvent(row, "divided", *old, mean, len(parts))


def _by_feature(conditions: Sequence[Condition]) -> dict[Any, Condition]:
    return {(each.feature, each.labels is None): each for each in conditions}


def _is_same(before: Sequence[Condition], now: Sequence[Condition]) -> bool:
    """Whether conditions are the same; categories that were unseen before may have joined."""
    old, new = _by_feature(before), _by_feature(now)
    return old.keys() == new.keys() and all(
        set(old[key].labels or ()) <= set(new[key].labels or ())
        and (old[key].low, old[key].high) == (new[key].low, new[key].high)
        for key in old
    )


def _is_narrower(now: Sequence[Condition], before: Sequence[Condition]) -> bool:
    """Whether all rows that meet conditions now met the others before."""
    old, new = _by_feature(before), _by_feature(now)
    return old.keys() <= new.keys() and all(
        old[key].low <= new[key].low
        and new[key].high <= old[key].high
        and (old[key].labels is None or set(new[key].labels or ()) <= set(old[key].labels or ()))
        for key in old
    )


def _saved_rule(saved: Any) -> _Known:
    if not isinstance(saved, dict) or saved.keys() != set(_Known._fields):
        raise TypeError(f"{validation.shown(saved)} is no saved rule")
    numbers = [validation.number(saved[name], name) for name in ("share", "mean", "error")]
    return _Known(tuple(map(Condition.from_dict, saved["conditions"])), *numbers)


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
