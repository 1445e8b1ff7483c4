"""The columns of a file: which is the target, and how the others are read."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sapwood import validation
from sapwood.rows.words import EXAMPLE
from sapwood.schema import PARTS, Calendar, Role, Rule, features_of
from sapwood.streams.stream import Kind, StreamError

__all__ = [
    "DECIDABLE",
    "PARTS",
    "Found",
    "ReadOptions",
    "Role",
    "Rule",
    "Schema",
    "decide",
    "nearest",
]

Found = Literal["number", "boolean", "time", "text"]
"""What the values of a column look like; a column without any looks like numbers."""
DECIDABLE: tuple[Found, ...] = ("number", "boolean", "time")
"""What an undecided column may turn out to be; a target no time."""
NO_TIME = "none"
"""The format of a column that holds no times although it looks like them."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file: types, formats and columns, as the arguments of `open_stream`.

    - `categorical`: with `known`, a column that is not there does no harm.
    - `time`: the column by which rows are in time; it may be dropped too.
    - `known`: a feature of the model that the file lacks is missing in all rows.
    - `ids`: columns that are kept as text, and are features only if a model knows them as features.
    - `sample_rows`: a pipe is waited for until so many rows have come.
    - `calendar`: not with `known`.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    time_formats: Mapping[str, str] = field(default_factory=dict)
    time_parts: tuple[str, ...] | None = None
    time: str | None = None
    known: Mapping[str, Kind] | None = None
    known_formats: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    header: bool | None = None
    ids: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    sample_rows: int | None = None
    calendar: Calendar | None = None
    known_calendars: Mapping[str, Calendar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Schema:
    """How to read a file.

    - `rules`: the features that are read from columns, in the order of these.
    - `target`: the target: its role is not "time" or "category".
    - `time`: the column of times by which rows are in time.
    """

    columns: tuple[str, ...]
    rules: tuple[Rule, ...]
    target: Rule | None
    time: Rule | None
    ids: tuple[Rule, ...] = ()

    @property
    def features(self) -> dict[str, Kind]:
        """The features in order, those of times with their parts."""
        return features_of(self.rules)

    @property
    def stream_fields(self) -> dict[str, Any]:
        """The fields of a `Stream` that is read so."""
        return {
            "features": self.features,
            "target": None if self.target is None else self.target.name,
            "declared": self.declared,
            "time": None if self.time is None else self.time.name,
            "time_formats": self.time_formats,
            "ids": tuple(rule.name for rule in self.ids),
            "rules": self.rules,
        }

    @property
    def clock(self) -> str | None:
        """The first feature that is a time."""
        return next((rule.name for rule in self.rules if rule.role == "time"), None)

    @property
    def declared(self) -> tuple[str, ...]:
        """The features that were declared to be categories."""
        return tuple(rule.name for rule in self.rules if rule.declared)

    @property
    def time_formats(self) -> tuple[tuple[str, str], ...]:
        """The columns of times or numbers that are read by a format, with that."""
        rules = dict.fromkeys((*self.rules, *filter(None, (self.time,))))
        formats = ((rule.name, rule.time_format or rule.number_format) for rule in rules)
        return tuple((name, format) for name, format in formats if format is not None)

    @property
    def undecided(self) -> dict[str, tuple[Found, ...]]:
        """The columns that are not decided yet, and what each can turn out to be."""
        rules = (*self.rules, *filter(None, (self.target, self.time)))
        names = dict.fromkeys(rule.name for rule in rules if rule.role == "undecided")
        of_target = () if self.target is None else (self.target.name,)
        return {name: DECIDABLE[:2] if name in of_target else DECIDABLE for name in names}

    def decided(self, looks: Mapping[str, Found]) -> "Schema":
        """Return how to read the file if undecided columns are found to look so."""

        def decided(rule: Rule) -> Rule:
            if rule.role != "undecided" or rule.name not in looks:
                return rule
            role = _role(looks[rule.name])
            exact, calendar = rule.exact and role == "number", rule.calendar
            calendar = calendar if role == "time" else None
            return Rule(rule.name, role, late=True, exact=exact, calendar=calendar)

        target, time = (rule and decided(rule) for rule in (self.target, self.time))
        return replace(self, rules=tuple(map(decided, self.rules)), target=target, time=time)

    @property
    def read(self) -> tuple[Rule, ...]:
        """All rules, each column once: features, target, time, ids; an id goes before a feature."""
        every = (self.time, self.target, *self.rules, *self.ids)
        return tuple({rule.name: rule for rule in every if rule is not None}.values())


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
        return f"did you mean {' or '.join(map(validation.shown, near))}?"
    shown = ", ".join(map(validation.shown, known[:10])) + (", …" if len(known) > 10 else "")
    return f"there are {shown}" if known else "there are no columns"


def decide(
    source: str,
    found: Mapping[str, Found | None],
    read_options: ReadOptions,
    formats: Mapping[str, str] | None = None,
) -> Schema:
    """Decide how to read a file.

    - `found`: all columns in order, and what their values look like; None if that is to be decided
      by the values themselves, which is possible for features that a model knows.
    - `formats`: the formats in which times and numbers were found to be written.
    - Raises StreamError if a column that is named is not there, or cannot be what it has to be.

    Examples
    --------
    >>> found = {"sold": "time", "city": "text", "zone": "number", "price": "number"}
    >>> schema = decide("flats.csv", found, ReadOptions("price", time_parts=("hour",)))
    >>> schema.features
    {'sold': 'number', 'sold.hour': 'number', 'city': 'category', 'zone': 'number'}
    >>> decide("flats.csv", found, ReadOptions("prize"))
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: flats.csv has no column 'prize' to predict: did you mean ...
    """
    _check_names(source, found, read_options)
    formats = formats or {}
    target = None
    if read_options.target is not None:
        looks = found[read_options.target] or "undecided"
        role: Role = looks if looks in ("boolean", "undecided") else "number"
        written = formats.get(read_options.target) if role == "number" else None
        target = Rule(read_options.target, role, number_format=written)
    time = None
    if read_options.time is not None:
        time = _rule(read_options.time, found[read_options.time], read_options, formats)
        if time.role not in ("time", "number", "undecided"):
            raise StreamError(
                f"{source}: column {validation.shown(time.name)} holds no times: give their format, as "
                f"by --time-format {time.name}='%d.%m.%Y %H:%M'"
            )
    ids = tuple(Rule(name, "category") for name in read_options.ids)
    left_out = {
        read_options.target,
        *read_options.drop,
        *(read_options.ids if read_options.known is None else ()),
    }
    rules = [
        _rule(name, looks, read_options, formats)
        for name, looks in found.items()
        if name not in left_out
    ]
    if read_options.known is not None:
        rules = _known_rules(rules, read_options.known, found)
        if not (rules or ids):
            some = nearest(next(iter(read_options.known), ""), found)
            raise StreamError(f"{source} has none of the model's features: {some}")
    if not (rules or ids):
        raise StreamError(
            f"{source} has no features: no column is left except the target; add columns, or drop fewer"
        )
    calendars = _calendars(source, [*filter(None, (time,)), *rules], read_options)
    rules = [replace(rule, calendar=calendars.get(rule.name)) for rule in rules]
    time = time and replace(time, calendar=calendars.get(time.name))
    return Schema(tuple(found), tuple(rules), target, time, ids)


def _calendars(
    source: str, rules: Sequence[Rule], read_options: ReadOptions
) -> dict[str, Calendar]:
    """Return the calendars of columns, of which the times of rows come first."""
    times = [rule.name for rule in rules if rule.role in ("time", "undecided")]
    if read_options.known is not None:
        known = read_options.known_calendars
        return {name: known[name] for name in times if name in known}
    if not read_options.calendar:
        return {}
    if not times:
        raise StreamError(
            f"{source} has no column of times, for which a time zone or special days are: give its "
            "format, as by --time-format NAME='%d.%m.%Y %H:%M'"
        )
    return {times[0]: read_options.calendar}


def _check_names(source: str, found: Mapping[str, Found | None], read_options: ReadOptions) -> None:
    wanted: list[tuple[str, Sequence[str]]] = [
        ("to predict", [] if read_options.target is None else [read_options.target]),
        ("to drop", read_options.drop),
        ("to take for categories", read_options.categorical if read_options.known is None else ()),
        ("with ids", read_options.ids),
        (
            "with times",
            [
                *read_options.time_formats,
                *([] if read_options.time is None else [read_options.time]),
            ],
        ),
    ]
    for purpose, names in wanted:
        for name in names:
            if name not in found:
                some = nearest(name, found)
                if purpose == "to predict" and read_options.known is not None:
                    others = [each for each in found if each not in read_options.known]
                    some = nearest(name, others) if others else "all columns are features"
                raise StreamError(
                    f"{source} has no column {validation.shown(name)} {purpose}: {some}"
                )
    for part in read_options.time_parts or ():
        if part not in PARTS:
            raise StreamError(
                f"{validation.shown(part)} is no part of a time: {', '.join(PARTS)} are"
            )
    for what, left_out in (("dropped", read_options.drop), ("an id", read_options.ids)):
        if read_options.target in left_out:
            words = f"the target {validation.shown(read_options.target)} cannot be {what}"
            raise StreamError(f"{source}: {words}")


def _rule(
    name: str, looks: Found | None, read_options: ReadOptions, formats: Mapping[str, str]
) -> Rule:
    parts = read_options.time_parts or ()
    given = read_options.time_formats.get(name)
    if given not in (None, NO_TIME):
        return Rule(name, "time", given, parts)
    if name in read_options.categorical:
        return Rule(name, "category", declared=True)
    if name in read_options.known_formats and given is None:
        kept = read_options.known_formats[name]
        if EXAMPLE.fullmatch(kept):
            return Rule(name, "number", number_format=kept)
        return Rule(name, "time", kept, parts)
    role: Role = "undecided" if looks is None else _role(looks)
    if role == "time":
        return Rule(name, role, formats.get(name), parts)
    written = formats.get(name) if role == "number" else None
    is_key = name in read_options.keys and role in ("number", "undecided") and written is None
    return Rule(name, role, number_format=written, exact=is_key)


def _role(looks: Found) -> Role:
    return "category" if looks == "text" else looks


def _known_rules(
    rules: Sequence[Rule], known: Mapping[str, Kind], columns: Iterable[str]
) -> list[Rule]:
    """Return the rules of columns that a model knows, each read as the model knows it."""
    fitting = []
    made = known.keys() - columns
    for rule in rules:
        kind = known.get(rule.name)
        parts = tuple(part for part in PARTS if f"{rule.name}.{part}" in made)
        role: Role = "time" if rule.role == "undecided" and parts else rule.role
        if kind == "category":
            fitting.append(Rule(rule.name, "category", declared=rule.declared))
        elif kind == "number":
            role = "number" if role == "category" else role
            parts = parts if role == "time" else ()
            made_so = Rule(rule.name, role, rule.time_format, parts, rule.number_format)
            fitting.append(replace(made_so, exact=rule.exact))
        elif role == "time" and parts:
            fitting.append(Rule(rule.name, role, rule.time_format, parts))
    return fitting
