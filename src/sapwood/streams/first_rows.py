"""What the first rows of a file tell: what its columns hold, how it is written, and what to add."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sapwood.streams.arrow import as_array, is_text, stored_type, tidy
from sapwood.streams.convert import convert
from sapwood.streams.dates import Recognised, recognise_numbers, recognise_text
from sapwood.streams.numbers import NumbersFound, recognise_written
from sapwood.streams.schema import NO_TIME, Found, Rule, Schema, Wishes, decide
from sapwood.streams.times import CHOSEN, telling_parts

__all__ = ["FirstRows", "first_texts"]

Sample = Mapping[str, pa.Array]
"""The first values of columns: text, or what the file says that they are."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a file, and how all of its rows are read because of them.

    Parameters
    ----------
    source : str
        The file, for messages.
    sample : mapping of str to pyarrow arrays
        The first values of each column.
    looks : mapping of str to looks
        All columns in order, and what their values look like.
    wishes : Wishes
        What is asked for.
    declared : bool
        Whether the file says itself what text and numbers mean.
    comma_between : bool
        Whether fields are separated by commas.

    Examples
    --------
    >>> sample = {"sold": pa.array(["10/2/12 9:00", "10/13/12 10:00"]), "y": pa.array(["1", "2"])}
    >>> first = FirstRows("a.csv", sample, {"sold": "text", "y": "number"}, Wishes("y"))
    >>> first.schema.rules
    (Rule(name='sold', role='time', time_format='%m/%d/%y %H:%M', parts=('hour', ...), ...),)
    """

    source: str
    sample: Sample
    looks: Mapping[str, Found | None]
    wishes: Wishes
    declared: bool = False
    comma_between: bool = False

    @property
    def schema(self) -> Schema:
        """How to read the file."""
        found = dict(self.looks)
        for name, format in self.wishes.time_formats.items():
            if format == NO_TIME and found.get(name) == "time":
                found[name] = "number" if self._is_typed(name) else "text"
        formats: dict[str, str] = {}
        for name, times in self._times().items():
            found[name] = "time"
            if times.format is not None:
                formats[name] = times.format
        for name, numbers in self._numbers(found).items():
            found[name] = "number"
            formats[name] = str(numbers.format)
        return self._with_parts(decide(self.source, found, self.wishes, formats))

    def _times(self) -> dict[str, Recognised]:
        """Return the columns of times that do not look like such, and how these are written."""
        if self.declared:
            return {}
        settled = {*self.wishes.categorical, *self.wishes.time_formats, self.wishes.target}
        found = {}
        for name, looks in self.looks.items():
            if name not in settled and name in self.sample and looks in ("text", "number"):
                values = list(first_texts(self.sample[name]))
                # A model that knows a column as numbers means these, and not their unit.
                numbers = looks == "number" and self.wishes.known is None
                recognise = recognise_numbers if numbers else recognise_text
                times = None if looks == "number" and not numbers else recognise(name, values)
                if times is not None:
                    found[name] = times
        return found

    def _numbers(self, found: Mapping[str, Found | None]) -> dict[str, NumbersFound]:
        """Return the columns of numbers that are not written plainly, and how they are."""
        if self.declared:
            return {}
        columns = {
            name: list(first_texts(self.sample[name]))
            for name, looks in found.items()
            if looks in ("text", "number")
            and name in self.sample
            and name not in self.wishes.categorical
            and not self._is_typed(name)
        }
        return recognise_written(
            columns, self.comma_between, self.wishes.decimal, self.wishes.thousands
        )

    def _is_typed(self, name: str) -> bool:
        """Whether the file says itself that a column holds no text."""
        return name in self.sample and not is_text(stored_type(self.sample[name].type))

    def _with_parts(self, schema: Schema) -> Schema:
        """Add the parts of times that the first rows do not show to be always the same."""
        if self.wishes.time_parts is not None or self.wishes.known is not None:
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
        alone = Schema((rule.name,), (replace(rule, parts=()),), None, None)
        seconds = convert(alone, {rule.name: values}, len(values)).columns[rule.name]
        return telling_parts(np.asarray(seconds, dtype=np.float64))


def first_texts(values: pa.Array) -> Iterable[str]:
    """Yield the values of a sample that are not missing as trimmed text.

    Examples
    --------
    >>> list(first_texts(pa.array([" 7", "?", None]))), list(first_texts(pa.array([7, None])))
    (['7'], ['7'])
    """
    array = as_array(values)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    for value in tidy(array).drop_null():
        yield value.as_buffer().to_pybytes().decode(errors="replace")
