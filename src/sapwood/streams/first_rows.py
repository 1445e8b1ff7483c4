"""Inference from the first rows of a file: types of columns, formats, and columns to derive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from sapwood import validation
from sapwood.streams.arrow import as_array, first_texts, is_text, stored_type
from sapwood.streams.column_table import PLAIN, describe_columns
from sapwood.streams.convert import read_column
from sapwood.streams.dates import Recognised, recognise_numbers, recognise_text
from sapwood.streams.numbers import NumbersFound, recognise_written
from sapwood.streams.schema import NO_TIME, Found, ReadOptions, Rule, Schema, decide
from sapwood.streams.stream import ColumnNote, StreamError
from sapwood.streams.times import CHOSEN, telling_parts

__all__ = ["FirstRows"]

Sample = Mapping[str, pa.Array]
"""The first values of columns: text, or values of the types that the file declares."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a file, and how all of its rows are read because of them.

    - `looks`: all columns in order, and what their values look like.
    - `declared`: whether the file declares the types of its columns.
    - `look_further`: returns many more values of a column, for what the first ones leave in doubt.

    Examples
    --------
    >>> sample = {"sold": pa.array(["10/2/12 9:00", "10/13/12 10:00"]), "y": pa.array(["1", "2"])}
    >>> first = FirstRows("a.csv", sample, {"sold": "text", "y": "number"}, ReadOptions("y"))
    >>> first.schema.rules
    (Rule(name='sold', role='time', time_format='%m/%d/%y %H:%M', parts=('hour', ...), ...),)
    """

    source: str
    sample: Sample
    looks: Mapping[str, Found | None]
    read_options: ReadOptions
    declared: bool = False
    comma_between: bool = False
    look_further: Callable[[str], pa.Array] | None = None

    @cached_property
    def schema(self) -> Schema:
        """How to read the file."""
        found = dict(self._looks)
        found.update(dict.fromkeys(self._times, "time"))
        found.update(dict.fromkeys(self._numbers, "number"))
        times = {name: times.format for name, times in self._times.items()}
        formats = {name: format for name, format in times.items() if format is not None}
        formats.update({name: str(numbers.format) for name, numbers in self._numbers.items()})
        self._check_target(found)
        return self._with_parts(decide(self.source, found, self.read_options, formats))

    @property
    def notes(self) -> tuple[ColumnNote, ...]:
        """How each column is read, for people; nothing if no rows were looked at."""
        if not self.sample:
            return ()
        doubts = {name: times.doubt for name, times in self._times.items()}
        doubts.update({name: numbers.doubt for name, numbers in self._numbers.items()})
        return tuple(describe_columns(self.schema, self.sample, doubts))

    @cached_property
    def _looks(self) -> dict[str, Found | None]:
        """The types of columns, without the times that the options exclude."""
        looks = dict(self.looks)
        for name, format in self.read_options.time_formats.items():
            if format == NO_TIME and looks.get(name) == "time":
                looks[name] = "number" if self._is_typed(name) else "text"
        return looks

    @cached_property
    def _times(self) -> dict[str, Recognised]:
        """Return the columns of times that do not look like such, and how these are written."""
        if self.declared:
            return {}
        settled = {
            *self.read_options.categorical,
            *self.read_options.time_formats,
            self.read_options.target,
        }
        settled |= {name for name in self.read_options.keys if self._looks.get(name) == "number"}
        found = {}
        for name, looks in self._looks.items():
            if name not in settled and name in self.sample and looks in ("text", "number"):
                values = list(first_texts(self.sample[name]))
                # A model that knows a column as numbers means these, and not their unit.
                numbers = looks == "number" and self.read_options.known is None
                recognise = recognise_numbers if numbers else recognise_text
                times = None if looks == "number" and not numbers else recognise(name, values)
                if times is not None:
                    found[name] = self._surely(name, times)
        return found

    def _surely(self, name: str, times: Recognised) -> Recognised:
        """Return how times are written, by more values if the first ones leave that in doubt."""
        if not times.doubt or self.looks[name] == "number" or self.look_further is None:
            return times
        again = recognise_text(name, list(first_texts(self.look_further(name))))
        return times if again is None or again.doubt else again

    @cached_property
    def _numbers(self) -> dict[str, NumbersFound]:
        """Return the columns of numbers that are not written plainly, and how they are."""
        if self.declared:
            return {}
        columns = {
            name: list(first_texts(self.sample[name]))
            for name, looks in self._looks.items()
            if looks in ("text", "number")
            and name in self.sample
            and name not in self._times
            and name not in self.read_options.categorical
            and not self._is_typed(name)
        }
        return recognise_written(
            columns, self.comma_between, self.read_options.decimal, self.read_options.thousands
        )

    def _check_target(self, found: Mapping[str, Found | None]) -> None:
        """Complain of a target that has text in all of the first rows."""
        name = self.read_options.target
        if name is None or found.get(name) != "text" or name not in self.sample:
            return
        texts = list(first_texts(self.sample[name]))
        if texts and not any(PLAIN.fullmatch(text) for text in texts):
            raise StreamError(
                f"{self.source}: the target {validation.shown(name)} holds text, such as "
                f"{validation.shown(texts[0])}: pass --task classes to sapwood evaluate or train, "
                "where a classifier predicts it, or name a column of numbers"
            )

    def _is_typed(self, name: str) -> bool:
        """Whether the file declares a column to be of another type than text."""
        return name in self.sample and not is_text(stored_type(self.sample[name].type))

    def _with_parts(self, schema: Schema) -> Schema:
        """Add the parts of times that the first rows do not show to be always the same."""
        if self.read_options.time_parts is not None or self.read_options.known is not None:
            return schema
        rules = tuple(
            replace(rule, parts=self._parts(rule)) if rule.role == "time" else rule
            for rule in schema.rules
        )
        # The rule of the rows' time is that of the feature, if it is one, so that it is read once.
        same = {rule.name: rule for rule in rules}
        time = schema.time and same.get(schema.time.name, schema.time)
        return replace(schema, rules=rules, time=time)

    def _parts(self, rule: Rule) -> tuple[str, ...]:
        values = self.sample.get(rule.name)
        if values is None:
            return CHOSEN
        if pa.types.is_duration(stored_type(values.type)):
            return ()
        seconds, _ = read_column(rule, as_array(values))
        return telling_parts(np.asarray(seconds, dtype=np.float64))
