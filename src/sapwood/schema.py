"""How the columns of rows become features: it is stored with a model, and applied everywhere.

The command line finds out what the columns of a file hold: numbers, in which format; times, in
which format or unit, and which of their parts are features of their own; categories; and which
column is the target. A `Schema` keeps that. Users of the model then give rows as they are in the
file, with times as `datetime`, `datetime64` or text, and they are converted in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Literal

from sapwood import validation
from sapwood.rows import frames, schema_columns
from sapwood.rows.calendar import Calendar
from sapwood.rows.encoded import EncodedColumns, EncodedRow
from sapwood.rows.encoder import columns_of_rows, is_rows
from sapwood.rows.times import (
    PARTS,
    UNITS,
    is_naive,
    is_naive_text,
    parts_of,
    parts_of_one,
    seconds_of_time,
    seconds_of_word,
)
from sapwood.rows.words import (
    BLANKS,
    EXAMPLE,
    boolean_of_word,
    is_missing,
    label_of,
    number_of_word,
)
from sapwood.validation import FloatArray, Label

__all__ = ["PARTS", "Calendar", "Role", "Rule", "Schema"]

Kind = Literal["number", "category"]
Role = Literal["number", "boolean", "time", "category", "undecided"]
ROLES = ("number", "boolean", "time", "category")

NOT_A_NUMBER = "must be a number, or text like {format}; use None for a missing value"
NOT_A_BOOLEAN = "must be true or false, or 1 or 0; use None for a missing value"
NOT_A_TIME = (
    "must be a time: a datetime, or text {format}; use None for a missing value, or fix the value"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How to read one column.

    Parameters
    ----------
    name : str
        The column.
    role : {"number", "boolean", "time", "category", "undecided"}
        What its values become: booleans 0 and 1, times seconds since 1970, in UTC. The first value
        of an undecided column decides whether it is a number, a boolean or a time.
    time_format : str, optional
        The format of times that are text, or the unit of those that are numbers; ISO 8601 if not
        given.
    parts : tuple of str
        What is added for a time; see `PARTS`.
    number_format : str, optional
        How numbers are written, if not plainly: 1234.5 in their way.
    declared : bool
        Whether a category was declared: then "7" becomes the label 7, as in other formats.
    late : bool
        Whether its role was decided by a value. A time then has no parts, as these would be new
        features, and what is no such value is reported to be no number, as it was before.
    exact : bool
        Whether numbers identify series: whole numbers that no double can hold then stay exact.
    calendar : Calendar, optional
        The time zone of a time, and its special days: each kind is added as a part is.
    """

    name: str
    role: Role
    time_format: str | None = None
    parts: tuple[str, ...] = ()
    number_format: str | None = None
    declared: bool = False
    late: bool = False
    exact: bool = False
    calendar: Calendar | None = None

    @property
    def derived(self) -> dict[str, str]:
        """The parts and special days, by the names of the features that they are."""
        parts = self.parts
        if self.calendar is not None and self.role == "time" and not self.late:
            parts = (*parts, *self.calendar.names)
        return {f"{self.name}.{part}": part for part in parts}

    def derive(self, seconds: FloatArray) -> dict[str, FloatArray]:
        """Return the features of `derived` for times in seconds."""
        if self.calendar is None:
            made = parts_of(seconds, self.parts) if self.parts else {}
        else:
            made = parts_of(self.calendar.local(seconds), self.parts)
            made |= self.calendar.special_days(seconds)
        return {name: made[part] for name, part in self.derived.items()}

    def derive_one(self, seconds: float) -> dict[str, float]:
        """Return what `derive` does, of one time."""
        if self.calendar is None:
            made = parts_of_one(seconds, self.parts)
        else:
            made = parts_of_one(self.calendar.local_one(seconds), self.parts)
            made |= self.calendar.special_days_one(seconds)
        return {name: made[part] for name, part in self.derived.items()}

    @property
    def converts(self) -> bool:
        """Whether values of the column may become others, or further features."""
        return self.role in ("boolean", "time", "category") or self.number_format is not None

    def value(self, given: Any) -> Any:
        """Return a value as the feature has it, None if it is missing.

        Raises
        ------
        sapwood.validation.Unfit
            If it cannot be one.

        Examples
        --------
        >>> from datetime import date
        >>> sold = Rule("sold", "time", "%d.%m.%Y")
        >>> sold.value("2.1.1970"), sold.value(date(1970, 1, 2)), sold.value(86400.0)
        (86400.0, 86400.0, 86400.0)
        >>> Rule("price", "number", number_format="1.234,5 €").value("1.250,00 €")
        1250.0
        """
        if self.role == "category":
            return self._label(given)
        if isinstance(given, str):
            return None if is_missing(given) else self._word(given.strip(BLANKS))
        return self._seconds(given) if self.role == "time" else given

    def _label(self, given: Any) -> Any:
        if type(given) is str and not self.declared:
            return None if is_missing(given) else given
        if not isinstance(given, Decimal):
            given = validation.plain(given)
        return label_of(given, self.declared)

    def _word(self, text: str) -> Any:
        """Return what text is."""
        found: float | None
        if self.role == "time" and self.time_format in UNITS:
            try:
                return self._seconds(float(text))
            except ValueError:
                found = None
        elif self.role == "time":
            found = seconds_of_word(text, self.time_format)
            if found is not None and self.calendar and is_naive_text(text, self.time_format):
                found = self.calendar.absolute_one(found)
        elif self.role == "boolean":
            found = boolean_of_word(text)
        elif self.number_format is not None:
            found = number_of_word(text, self.number_format)
        else:
            return text  # of a number: the model finds the words
        if found is None:
            raise validation.Unfit(self.rule)
        return found

    def _seconds(self, given: Any) -> float | None:
        """Return the seconds of a time that is no text; numbers are seconds, or have a unit."""
        seconds = seconds_of_time(given)
        if seconds is not None and self.calendar is not None and is_naive(given):
            seconds = self.calendar.absolute_one(seconds)
        if seconds is None:
            number = validation.plain(given)
            if number is None:
                return None
            if isinstance(number, int) and self.time_format not in (None, *UNITS):
                return self._word(str(number))  # type: ignore[no-any-return]
            validation.check_number(number)
            if isinstance(number, int):  # a quotient of whole numbers is rounded once
                return number / UNITS.get(self.time_format or "", 1)
            seconds = float(number) / UNITS.get(self.time_format or "", 1)
        return None if math.isnan(seconds) else seconds

    @property
    def described(self) -> str:
        """How the column is read, in words."""
        format = self.time_format or self.number_format
        words = f"as {self.role}" if format is None else f"by the format {format!r}"
        if self.calendar is None:
            return words
        named = " and ".join(self.calendar.names)
        zone = f" in {self.calendar.timezone or 'UTC'}"
        return f"{words}{zone}{f' with the days of {named}' if named else ''}"

    @property
    def rule(self) -> str:
        """What a value of the column has to be, in words."""
        if self.role == "boolean":
            return NOT_A_BOOLEAN
        if self.role != "time":
            return NOT_A_NUMBER.format(format=self.number_format)
        shape = "of ISO 8601" if self.time_format is None else f"in the format {self.time_format!r}"
        return NOT_A_TIME.format(format=shape)


def features_of(rules: Iterable[Rule]) -> dict[str, Kind]:
    """Return the features of columns in order, those of times with their parts."""
    features: dict[str, Kind] = {}
    for rule in rules:
        features[rule.name] = "category" if rule.role == "category" else "number"
        features.update(dict.fromkeys(rule.derived, "number"))
    return features


@dataclass(frozen=True)
class Schema:
    """The columns of a model: their types, formats and roles.

    Parameters
    ----------
    rules : tuple of Rule
        The columns that become features, in their order.
    targets : tuple of names
        The column that is predicted, or several.
    time : str, optional
        The column by which rows are in time.
    ids : tuple of str
        The columns that identify rows.

    Attributes
    ----------
    converting : dict of Rule
        The rules of columns whose values may become others, by name.

    Examples
    --------
    >>> import numpy as np
    >>> schema = Schema((Rule("sold", "time", "%d.%m.%Y", ("weekday",)), Rule("area", "number")))
    >>> schema.encode_one({"sold": "2.1.1970", "area": 50})
    {'sold': 86400.0, 'area': 50, 'sold.weekday': 4.0}
    >>> schema.encode({"sold": np.array(["1970-01-02", "NaT"], "datetime64[D]")})
    {'sold': array([86400.,    nan]), 'sold.weekday': array([ 4., nan])}
    """

    rules: tuple[Rule, ...] = ()
    targets: tuple[Label, ...] = ()
    time: str | None = None
    ids: tuple[str, ...] = ()
    converting: dict[Label, Rule] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {rule.name: rule for rule in self.rules if rule.converts}
        object.__setattr__(self, "converting", found)

    @property
    def features(self) -> dict[str, Kind]:
        """The features in order, those of times with their parts."""
        return features_of(self.rules)

    @property
    def formats(self) -> dict[str, str]:
        """The columns of times or numbers that are read by a format or in a unit, with that."""
        given = ((rule.name, rule.time_format or rule.number_format) for rule in self.rules)
        return {name: format for name, format in given if format is not None}

    @property
    def calendars(self) -> dict[str, Calendar]:
        """The calendars of columns of times that have one."""
        return {rule.name: rule.calendar for rule in self.rules if rule.calendar is not None}

    def __bool__(self) -> bool:
        return bool(self.rules or self.targets or self.ids) or self.time is not None

    # -- rows -------------------------------------------------------------------------------------

    def encode_one(self, x: Any) -> Any:
        """Return one row as features: times in seconds and with their parts, numbers and labels.

        Parameters
        ----------
        x : mapping
            Columns and values, as in the file that the schema is of. What the schema does not name
            stays as it is, and so does a part of a time that the row has already. What is no
            mapping is returned as it is.

        Raises
        ------
        ValueError
            If a value cannot be what its column is.
        """
        if type(x) is EncodedRow or not isinstance(x, Mapping):
            return x
        row = EncodedRow(x)
        for name, rule in self.converting.items():
            if name not in row:
                continue
            derived = rule.derived
            if _is_second(row[name]) and any(part in x for part in derived):
                continue  # it was encoded before
            try:
                row[name] = value = rule.value(row[name])
            except validation.Unfit as broken:
                sentence = validation.feature_sentence(name, x[name], None, str(broken))
                raise ValueError(sentence) from None
            if derived:
                parts = rule.derive_one(math.nan if value is None else value)
                for part, own in parts.items():
                    row.setdefault(part, None if math.isnan(own) else own)
        return row

    def encode(self, X: Any) -> dict[Any, Any]:
        """Return many rows as columns of features.

        Parameters
        ----------
        X : mapping of columns, list of dicts, data frame, or array
            As for models. The columns of an array are those of `rules`, in their order.

        Returns
        -------
        dict of columns
            Numbers as arrays, NaN where one is missing; labels as a sequence, None where one is
            missing. Models take it as it is.

        Raises
        ------
        ValueError
            If a value cannot be what its column is.
        """
        from sapwood.streams.memory import columns_of

        if isinstance(X, EncodedColumns):
            return X
        X = schema_columns.named(X, [rule.name for rule in self.rules])
        if is_rows(X):
            X = columns_of_rows(X)
        frame = None if isinstance(X, Mapping) else frames.opened(X)
        items = X.items() if isinstance(X, Mapping) else () if frame is None else frame[0]
        return EncodedColumns(schema_columns.encoded(self, items, columns_of(X)))

    # -- what it is made of -----------------------------------------------------------------------

    @classmethod
    def of_formats(cls, features: Mapping[Label, str], formats: Mapping[str, str]) -> Schema:
        """Return what is known of a model whose file has formats and no schema yet.

        Times are known by their formats, and by the names of their parts.

        Parameters
        ----------
        features : mapping of names to kinds
            Those of the model.
        formats : mapping of str to str
            By which columns were read.

        Examples
        --------
        >>> kinds = {"day": "number", "day.hour": "number", "price": "number", "city": "category"}
        >>> schema = Schema.of_formats(kinds, {"price": "1.234,5"})
        >>> schema.rules[0].name, schema.rules[0].parts, schema.rules[1].number_format
        ('day', ('hour',), '1.234,5')
        """
        rules = []
        for name in dict.fromkeys((*features, *formats)):
            if not isinstance(name, str) or features.get(name, "number") == "category":
                continue
            parts = tuple(part for part in PARTS if f"{name}.{part}" in features)
            format = formats.get(name)
            if format is not None and EXAMPLE.fullmatch(format):
                rules.append(Rule(name, "number", number_format=format))
            elif format is not None or parts:
                rules.append(Rule(name, "time", format, parts))
        return cls(tuple(rules))

    def renamed(self, names: Mapping[str, Any]) -> Schema:
        """Return the schema with other names for some columns.

        Parameters
        ----------
        names : mapping
            The new names by the old ones.
        """
        rules = tuple(replace(rule, name=names.get(rule.name, rule.name)) for rule in self.rules)
        return replace(self, rules=rules)

    def of_target(self, target: Label) -> Schema:
        """Return the schema of a model of one of several targets.

        Parameters
        ----------
        target : str or int
            Its name.
        """
        return replace(self, targets=(target,)) if self.targets else self

    def joined(self, other: Schema) -> Schema:
        """Return the schema of two models that become one.

        Parameters
        ----------
        other : Schema
            That of the other model.

        Raises
        ------
        ValueError
            If they read a column in different ways, or predict different targets.
        """
        rules = {rule.name: rule for rule in self.rules}
        for rule in other.rules:
            known = rules.setdefault(rule.name, rule)
            parts = tuple(part for part in PARTS if part in {*known.parts, *rule.parts})
            rules[rule.name] = replace(known, parts=parts)
            if rules[rule.name] != replace(rule, parts=parts):
                raise ValueError(
                    f"{validation.shown(rule.name)} was read {known.described} for one model and "
                    f"{rule.described} for another: its values may mean other things"
                )
        if self.targets and other.targets and set(self.targets) != set(other.targets):
            one, two = (", ".join(map(validation.shown, each.targets)) for each in (self, other))
            raise ValueError(f"the target of one model is {one}, and that of another is {two}")
        return Schema(
            tuple(rules.values()),
            self.targets or other.targets,
            self.time or other.time,
            self.ids or other.ids,
        )

    def to_header(self) -> dict[str, Any]:
        """Return all that it is, in terms of JSON."""
        plain = Rule("", "number")
        rules = []
        for rule in self.rules:
            given = {each.name: getattr(rule, each.name) for each in fields(Rule)}
            kept = {key: own for key, own in given.items() if own != getattr(plain, key)}
            rules.append({**kept, "name": rule.name, "role": rule.role})
            if rule.parts:
                rules[-1]["parts"] = list(rule.parts)
            if rule.calendar is not None:
                rules[-1]["calendar"] = rule.calendar.to_header()
        return {
            "rules": rules,
            "targets": list(self.targets),
            "time": self.time,
            "ids": list(self.ids),
        }

    @classmethod
    def from_header(cls, header: Any) -> Schema:
        """Return the schema of a header, of which nothing is trusted.

        Raises
        ------
        ValueError
            If there is anything wrong with it.
        """
        _check(isinstance(header, dict), "it is no dict")
        _check(header.keys() == {"rules", "targets", "time", "ids"}, "its entries are wrong")
        rules, targets, time, ids = (header[name] for name in ("rules", "targets", "time", "ids"))
        _check(all(type(each) is list for each in (rules, targets, ids)), "an entry is no list")
        _check(all(type(name) in (str, int) for name in targets), "a target is no name")
        _check(all(type(name) is str for name in ids), "an id is no name")
        _check(time is None or type(time) is str, "the time is no name")
        made = tuple(map(_rule_of, rules))
        _check(len({rule.name for rule in made}) == len(made), "a column occurs twice")
        return cls(made, tuple(targets), time, tuple(ids))


def _rule_of(entry: Any) -> Rule:
    _check(isinstance(entry, dict), "a rule is no dict")
    known = {each.name for each in fields(Rule)}
    _check({"name", "role"} <= entry.keys() <= known, "the entries of a rule are wrong")
    _check(type(entry["name"]) in (str, int), "a column has no name")
    _check(type(entry["role"]) is str and entry["role"] in ROLES, "a role is wrong")
    parts = entry.get("parts", [])
    good = type(parts) is list and all(type(part) is str and part in PARTS for part in parts)
    _check(good and len(set(parts)) == len(parts), "the parts of a time are wrong")
    for name in ("time_format", "number_format"):
        _check(type(entry.get(name, "")) is str, f"a {name} is wrong")
    if "number_format" in entry:
        found = EXAMPLE.fullmatch(entry["number_format"])
        good = found is not None and found["thousands"] != found["decimal"]
        _check(good, "a number_format is wrong")
    for name in ("declared", "late", "exact"):
        _check(type(entry.get(name, False)) is bool, f"{name} is wrong")
    calendar = None
    if "calendar" in entry:
        _check(entry["role"] == "time", "a column that is no time has a calendar")
        try:
            calendar = Calendar.from_header(entry["calendar"])
        except ValueError as error:
            _check(False, str(error))
    return Rule(**{**entry, "parts": tuple(parts), "calendar": calendar})


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(f"the schema is not as it was saved: {complaint}")


def _is_second(value: Any) -> bool:
    """Whether a value may be seconds."""
    return isinstance(value, float) or value is None
