"""How each column of a file is read, and what about it may not be meant so."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sapwood.streams.arrow import NUMBER, as_array, first_texts
from sapwood.streams.convert import read_column
from sapwood.streams.numbers import sign_of
from sapwood.streams.schema import Role, Rule, Schema
from sapwood.streams.stream import ColumnNote, FloatArray

__all__ = ["describe_columns"]

KINDS: dict[Role, str] = {"boolean": "true or false"}
LEFT_OUT = "left out"
ID = "id"
FEW = 10
"""Values from which on it is no chance that they are all the same, or count."""
MANY = 20
"""Values from which on it is no chance that text never repeats."""
NEARLY_ALL = 0.9
NEARLY_ONE = 0.99
PLAIN = re.compile(NUMBER, re.ASCII)


def describe_columns(
    schema: Schema, sample: Mapping[str, pa.Array], doubts: Mapping[str, str] | None = None
) -> list[ColumnNote]:
    """Return a note on each column of a file, in its order.

    - `doubts`: what is in doubt about columns already; empty if nothing is.

    Examples
    --------
    >>> from sapwood.streams.schema import ReadOptions, decide
    >>> schema = decide("a.csv", {"row": "number", "city": "text", "y": "number"}, ReadOptions("y"))
    >>> counts = pa.array([str(row) for row in range(1, 31)])
    >>> sample = {"row": counts, "city": pa.array(["Oslo", "?"] * 15), "y": counts}
    >>> for note in describe_columns(schema, sample):
    ...     print(note.name, note.kind, note.example, note.missing, note.distinct, note.warnings)
    row number 1 0 30 ('is the same as the target: ...', 'counts the rows: ...')
    city category Oslo 15 1 ('is constant in the first rows; useful only if it varies later',)
    y number 1 0 30 ()
    """
    rules = {rule.name: rule for rule in schema.read}
    features = {rule.name for rule in schema.rules}
    unused = dict.fromkeys((rule.name for rule in schema.ids), ID)
    rows = max(map(len, sample.values()), default=0)
    target = None
    if schema.target is not None and schema.target.name in sample:
        target = _numbers(schema.target, sample[schema.target.name])
    notes = []
    for name in schema.columns:
        rule = rules.get(name)
        values = sample.get(name, pa.nulls(rows))
        texts = list(first_texts(values))
        is_target = schema.target is not None and name == schema.target.name
        warnings: list[str] = []
        if rule is not None and name in features:
            warnings = [*_warnings(rule, values, texts, None if is_target else target)]
        if rule is not None and doubts and doubts.get(name):
            warnings.append(doubts[name])
        used = rule is not None and (name in features or is_target)
        notes.append(
            ColumnNote(
                name,
                KINDS.get(rule.role, rule.role)
                if rule is not None and used
                else unused.get(name, LEFT_OUT),
                is_target,
                None if rule is None else rule.time_format or rule.number_format,
                () if rule is None else tuple(rule.derived.values()),
                next(iter(texts), None),
                rows - len(texts),
                len(set(texts)),
                rows,
                tuple(warnings),
            )
        )
    return notes


def _warnings(
    rule: Rule, values: pa.Array, texts: Sequence[str], target: FloatArray | None
) -> Iterator[str]:
    """Yield what a feature may not be meant for."""
    drop = f"leave it out with --drop {rule.name}"
    distinct = len(set(texts))
    if not texts and len(values):
        yield f"has no value in the first rows: {drop}"
    elif distinct == 1 and len(texts) >= FEW:
        yield "is constant in the first rows; useful only if it varies later"
    if rule.role == "category":
        numbers = sum(PLAIN.fullmatch(text) is not None for text in texts)
        if len(texts) >= MANY and distinct >= NEARLY_ALL * len(texts):
            yield f"has another text in nearly every row: an id? {drop}, or name it by --id"
            return
        signs = dict.fromkeys(sign for text in texts if (sign := sign_of(text)))
        if len(signs) > 1 and sum(map(bool, map(sign_of, texts))) > len(texts) / 2:
            some = " and ".join([*signs][:3])
            yield f"holds amounts of {some}, which stay text: convert them to one"
        elif not rule.declared and len(texts) / 2 < numbers < len(texts):
            other = next(text for text in texts if not PLAIN.fullmatch(text))
            yield (
                f"is text because of values like {other!r:.40}, though {numbers / len(texts):.0%} "
                "are numbers: leave these empty"
            )
        return
    numbers_read = _numbers(rule, values)
    if target is not None:
        yield from _likeness(numbers_read, target, drop)
    if rule.role == "number" and len(texts) >= FEW and _counts(numbers_read):
        yield f"counts the rows: {drop}, unless the count itself is informative"


def _numbers(rule: Rule, values: pa.Array) -> FloatArray:
    """Return values as numbers, NaN where they are none."""
    return np.asarray(read_column(rule, as_array(values))[0], dtype=np.float64)


def _likeness(numbers: FloatArray, target: FloatArray, drop: str) -> Iterator[str]:
    both = np.isfinite(numbers) & np.isfinite(target) if len(numbers) == len(target) else None
    if both is None or both.sum() < FEW:
        return
    x, y = numbers[both], target[both]
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return
    if (x == y).all():
        yield f"is the same as the target: {drop}, unless it is known beforehand"
        return
    with np.errstate(all="ignore"):
        x, y = x / np.abs(x).max(), y / np.abs(y).max()
        correlation = abs(float(np.corrcoef(x, y)[0, 1]))
    if correlation > NEARLY_ONE:
        yield (
            f"explains nearly all of the target (correlation {correlation:.4f}): {drop}, unless it is "
            "known beforehand"
        )


def _counts(numbers: FloatArray) -> bool:
    """Whether each number is whole, and one more than the one before it."""
    whole = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    return bool(whole and (np.diff(numbers) == 1.0).all())
