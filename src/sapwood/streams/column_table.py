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
NEARLY_SAME = 1e-3
"""Difference of two columns of numbers, as a share of their range, up to which they are the same."""
SURELY, MOST_PAIRED = 50, 300
"""Rows from which on it is no chance that two columns sum to the target, and most columns of numbers
that are looked at for that."""
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
    numbers = {
        rule.name: _numbers(rule, sample.get(rule.name, pa.nulls(rows)))
        for rule in schema.rules
        if rule.role != "category"
    }
    pairs: dict[str, list[str]] = {}
    if schema.target is not None and target is not None:
        pairs = _pairs(numbers, target, schema.target.name)
    notes = []
    for name in schema.columns:
        rule = rules.get(name)
        values = sample.get(name, pa.nulls(rows))
        texts = list(first_texts(values))
        is_target = schema.target is not None and name == schema.target.name
        warnings: list[str] = []
        if rule is not None and name in features:
            warnings = [*_warnings(rule, texts, rows, numbers.get(name), target)]
            warnings += pairs.get(name, [])
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
    rule: Rule,
    texts: Sequence[str],
    rows: int,
    numbers_read: FloatArray | None,
    target: FloatArray | None,
) -> Iterator[str]:
    """Yield what a feature may not be meant for."""
    drop = f"leave it out with --drop {rule.name}"
    distinct = len(set(texts))
    if not texts and rows:
        yield f"has no value in the first rows: {drop}"
    elif distinct == 1 and len(texts) >= FEW:
        yield "is constant in the first rows; useful only if it varies later"
    if numbers_read is None:
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


def _pairs(
    numbers: Mapping[str, FloatArray], target: FloatArray, target_name: str
) -> dict[str, list[str]]:
    """Return a warning for the first of two columns whose sum or difference is the target.

    Examples
    --------
    >>> members, guests = np.arange(60.0), np.arange(60.0) % 7
    >>> columns = {"members": members, "hour": members % 5, "guests": guests}
    >>> _pairs(columns, members + guests, "all")["members"]
    ['determines the target together with guests (all = members + guests): leave both out ...']
    >>> [*_pairs(columns, guests - members, "more").values()]
    [['determines the target together with guests (more = guests - members): leave both out ...']]
    """
    known = np.isfinite(target)
    y = target[known]
    if len(y) < SURELY or np.ptp(y) == 0.0:
        return {}
    found: dict[str, list[str]] = {}
    within = NEARLY_SAME * np.ptp(y)
    columns = {name: own[known] for name, own in numbers.items() if len(own) == len(target)}
    names = [name for name, own in columns.items() if _range(own) > within][:MOST_PAIRED]
    matrix = np.array([columns[name] for name in names])
    for place, (one, x) in enumerate(zip(names, matrix, strict=True)):
        others = matrix[place + 1 :]
        for rest, relation in ((y - x, "{0} + {1}"), (x - y, "{0} - {1}"), (x + y, "{1} - {0}")):
            # A missing value rules nothing out; the first rows rule out nearly all columns.
            unlike = np.abs(others[:, :FEW] - rest[:FEW]) > within
            for near in place + 1 + np.flatnonzero(~unlike.any(axis=1)):
                other, errors = names[near], np.abs(matrix[near] - rest)
                if np.isfinite(errors).sum() >= SURELY and np.nanmax(errors) <= within:
                    found.setdefault(one, []).append(
                        f"determines the target together with {other} ({target_name} = "
                        f"{relation.format(one, other)}): leave both out with --drop {one} --drop "
                        f"{other}, unless they are known beforehand"
                    )
    return found


def _range(numbers: FloatArray) -> float:
    """Return the largest difference between known numbers, 0 if none is known."""
    known = numbers[np.isfinite(numbers)]
    return float(np.ptp(known)) if len(known) else 0.0


def _counts(numbers: FloatArray) -> bool:
    """Whether each number is whole, and one more than the one before it."""
    whole = np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
    return bool(whole and (np.diff(numbers) == 1.0).all())
