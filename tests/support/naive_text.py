"""Reference implementations: the rows of a text, letter by letter, and the values of fields."""

import csv
import io
import math
from datetime import UTC, datetime

MISSING = (
    "",
    "?",
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)


def naive_rows(text, longest=1 << 20):
    """Rows with their ends, and whether a quote of them never closes."""
    rows, start = [], 0
    while start < len(text):
        line_end = text.find(b"\n", start) + 1 or len(text)
        end, strict, closed = naive_end(text, start)
        if closed and (end <= line_end or (strict and end - start <= longest)):
            rows.append((text[start:end], False))
        else:
            rows.append((text[start:line_end], True))
        start += len(rows[-1][0])
    return rows


def naive_end(text, start):
    """Where a row ends, whether closing quotes end its fields, and whether none is left open."""
    state, strict = "start", True
    for place in range(start, len(text)):
        letter = text[place : place + 1]
        if letter == b"\n" and state != "quoted":
            return place + 1, strict, True
        if state == "quoted":
            state = "behind" if letter == b'"' else "quoted"
        elif letter == b",":
            state = "start"
        elif letter == b'"' and state in ("start", "behind"):
            state = "quoted"
        elif letter == b"\r" and state in ("behind", "return"):
            state = "return"
        else:
            strict = strict and state in ("start", "plain")
            state = "plain"
    return len(text), strict, state != "quoted"


def naive_read(text, roles, target, time):
    """The good rows of CSV as (line, values), and the bad ones as (line, reason, column, raw).

    `roles` are those of all columns, in order; the text is without a header.
    """
    line = 1
    good, bad = [], []
    for row, unclosed in naive_rows(text):
        number, raw = line, row.rstrip(b"\r\n")
        line += row.count(b"\n") + (not row.endswith(b"\n"))
        if not raw:
            continue
        if unclosed:
            bad.append((number, "unclosed quote", None, raw))
            continue
        [fields] = csv.reader(io.StringIO(raw.decode(errors="surrogateescape"), newline=""))
        if len(fields) != len(roles):
            bad.append((number, "another number of fields", None, raw))
            continue
        values, fault = {}, None
        for (name, role), field in zip(roles.items(), fields, strict=True):
            values[name], reason = naive_value(field, role, name == target)
            if name == time and values[name] is None:
                reason = reason or "not a time"
            fault = fault or (reason and (number, reason, name, raw))
        if fault:
            bad.append(fault)
        else:
            good.append((number, values))
    return good, bad


def naive_value(field, role, is_target):  # noqa: PLR0911 - a line for each case
    """The value of a field, None if it is missing, and its fault."""
    text = field.strip(" \t")
    if any(0xDC80 <= ord(letter) <= 0xDCFF for letter in text):
        return None, "bad encoding"
    if text in MISSING:
        return None, None
    if role == "category":
        return field, "label too long" if len(field) > 1000 else None
    if role == "boolean":
        known = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
        return known.get(text.lower()), None if text.lower() in known else "not true or false"
    if role == "time":
        try:
            moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            return None, "not a time"
        return moment.timestamp(), None
    try:
        number = (
            float(text) if text.isascii() and "_" not in text and text == text.strip() else None
        )
    except ValueError:
        number = None
    if number is None:
        return None, "target is not a number" if is_target else "not a number"
    if math.isnan(number):
        return None, None
    return number, "not finite" if math.isinf(number) else None
