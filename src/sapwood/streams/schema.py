"""What the columns of a file are: which is the target, and what becomes of the others."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sapwood import door
from sapwood.streams.stream import Kind, StreamError

__all__ = ["PARTS", "Found", "Role", "Rule", "Schema", "Wishes", "decide", "nearest"]

Found = Literal["number", "boolean", "time", "text"]
"""What the values of a column look like; a column without any looks like numbers."""
Role = Literal["number", "boolean", "time", "category"]
PARTS = ("hour", "weekday", "month")
"""What a time can be taken apart into: hour 0 to 23, weekday 0 (Monday) to 6, month 1 to 12."""


@dataclass(frozen=True)
class Wishes:
    """What the reader of a file asks for.

    Parameters
    ----------
    target : str, optional
        The column to predict.
    drop : tuple of str
        Columns to leave out.
    categorical : tuple of str
        Columns that are categories although they look like numbers. With `known`, one that is not
        there does no harm.
    time_formats : mapping of str to str
        Columns that hold times, with their formats as in `datetime.strptime`. Times of ISO 8601
        ("2026-11-15", "2026-11-15 14:30:00") are found without.
    time_parts : tuple of {"hour", "weekday", "month"}
        Features to add for each column of times, named like "sold.hour".
    time : str, optional
        The column by which rows are in time, for labels that come late; it may be dropped too.
    known : mapping of names to kinds, optional
        The features of a model that is there already: other columns are left out, and these are
        read as what they are. One that the file lacks is missing in all rows.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    time_formats: Mapping[str, str] = field(default_factory=dict)
    time_parts: tuple[str, ...] = ()
    time: str | None = None
    known: Mapping[str, Kind] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How to read one column.

    Parameters
    ----------
    name : str
        The column.
    role : {"number", "boolean", "time", "category"}
        What its values become: booleans 0 and 1, times seconds since 1970, in UTC.
    time_format : str, optional
        The format of times that are text; ISO 8601 if not given.
    declared : bool
        Whether a category was declared: then "7" becomes the label 7, as in other formats.
    """

    name: str
    role: Role
    time_format: str | None = None
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """How to read a file.

    Parameters
    ----------
    columns : tuple of str
        All columns of the file, in its order.
    rules : tuple of Rule
        The features that are read from columns, in the order of these.
    target : Rule, optional
        The target: its role is "number" or "boolean".
    time : Rule, optional
        The column of times by which rows are in time.
    parts : tuple of {"hour", "weekday", "month"}
        What is added for each feature of the role "time".
    """

    columns: tuple[str, ...]
    rules: tuple[Rule, ...]
    target: Rule | None
    time: Rule | None
    parts: tuple[str, ...]

    @property
    def features(self) -> dict[str, Kind]:
        """The features in order, those of times with their parts."""
        features: dict[str, Kind] = {}
        for rule in self.rules:
            features[rule.name] = "category" if rule.role == "category" else "number"
            if rule.role == "time":
                features.update({f"{rule.name}.{part}": "number" for part in self.parts})
        return features

    @property
    def declared(self) -> tuple[str, ...]:
        """The features that were declared to be categories."""
        return tuple(rule.name for rule in self.rules if rule.declared)

    @property
    def read(self) -> tuple[Rule, ...]:
        """All rules, each column once: features, target, time."""
        rules = {rule.name: rule for rule in (self.time, self.target) if rule is not None}
        return tuple({**rules, **{rule.name: rule for rule in self.rules}}.values())


def nearest(name: str, names: Iterable[str]) -> str:
    """Return words that name the nearest of some names, or all of them if none is near.

    Examples
    --------
    >>> nearest("pirce", ["price", "carat"])
    "did you mean 'price'?"
    >>> nearest("y", ["price", "carat"])
    "there are 'price', 'carat'"
    """
    known = list(names)
    near = [other for other in known if len(name) > 2 and other.startswith(name)][:3]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not near:
        folded = {other.casefold(): other for other in known}
        near = [folded[name.casefold()]] if name.casefold() in folded else []
    if near:
        return f"did you mean {' or '.join(map(door.shown, near))}?"
    shown = ", ".join(map(door.shown, known[:10])) + (", …" if len(known) > 10 else "")
    return f"there are {shown}" if known else "there are no columns"


def decide(source: str, found: Mapping[str, Found], wishes: Wishes) -> Schema:
    """Decide how to read a file.

    Parameters
    ----------
    source : str
        The file, for messages.
    found : mapping of names to looks
        All columns in order, and what their values look like.
    wishes : Wishes
        What is asked for.

    Raises
    ------
    StreamError
        If a column that is named is not there, or cannot be what it has to be.

    Examples
    --------
    >>> found = {"sold": "time", "city": "text", "zone": "number", "price": "number"}
    >>> schema = decide("flats.csv", found, Wishes("price", time_parts=("hour",)))
    >>> schema.features
    {'sold': 'number', 'sold.hour': 'number', 'city': 'category', 'zone': 'number'}
    >>> decide("flats.csv", found, Wishes("prize"))
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: flats.csv has no column 'prize' to predict: did you mean ...
    """
    _check_names(source, found, wishes)
    target = None
    if wishes.target is not None:
        role: Role = "boolean" if found[wishes.target] == "boolean" else "number"
        target = Rule(wishes.target, role)
    time = None
    if wishes.time is not None:
        time = _rule(wishes.time, found[wishes.time], wishes)
        if time.role not in ("time", "number"):
            raise StreamError(
                f"{source}: column {door.shown(time.name)} holds no times: give their format, as "
                f"by --time-format {time.name}='%d.%m.%Y %H:%M'"
            )
    left_out = {wishes.target, *wishes.drop}
    rules = [_rule(name, looks, wishes) for name, looks in found.items() if name not in left_out]
    if wishes.known is not None:
        rules = _known_rules(rules, wishes.known, wishes.time_parts)
        if not rules:
            some = nearest(next(iter(wishes.known), ""), found)
            raise StreamError(f"{source} has none of the model's features: {some}")
    if not rules:
        raise StreamError(f"{source} has no features: no column is left beside the target")
    return Schema(tuple(found), tuple(rules), target, time, wishes.time_parts)


def _check_names(source: str, found: Mapping[str, Found], wishes: Wishes) -> None:
    wanted: list[tuple[str, Sequence[str]]] = [
        ("to predict", [] if wishes.target is None else [wishes.target]),
        ("to drop", wishes.drop),
        ("to take for categories", wishes.categorical if wishes.known is None else ()),
        ("with times", [*wishes.time_formats, *([] if wishes.time is None else [wishes.time])]),
    ]
    for purpose, names in wanted:
        for name in names:
            if name not in found:
                raise StreamError(
                    f"{source} has no column {door.shown(name)} {purpose}: {nearest(name, found)}"
                )
    for part in wishes.time_parts:
        if part not in PARTS:
            raise StreamError(f"{door.shown(part)} is no part of a time: {', '.join(PARTS)} are")
    if wishes.target in wishes.drop:
        raise StreamError(f"{source}: the target {door.shown(wishes.target)} cannot be dropped")


def _rule(name: str, looks: Found, wishes: Wishes) -> Rule:
    if name in wishes.time_formats:
        return Rule(name, "time", wishes.time_formats[name])
    if name in wishes.categorical:
        return Rule(name, "category", declared=True)
    return Rule(name, "category" if looks == "text" else looks)


def _known_rules(
    rules: Sequence[Rule], known: Mapping[str, Kind], parts: Sequence[str]
) -> list[Rule]:
    """Return the rules of columns that a model knows, each read as the model knows it."""
    fitting = []
    for rule in rules:
        kind = known.get(rule.name)
        if kind == "category":
            fitting.append(Rule(rule.name, "category", declared=rule.declared))
        elif kind == "number":
            role = rule.role if rule.role in ("boolean", "time") else "number"
            fitting.append(Rule(rule.name, role, rule.time_format))
        elif rule.role == "time" and any(f"{rule.name}.{part}" in known for part in parts):
            fitting.append(rule)
    return fitting
