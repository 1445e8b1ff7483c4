"""A reference implementation of the evaluation: errors by their definitions, labels by a list."""

import math
from itertools import pairwise

import numpy as np

from sapwood.model import StoredModel
from sapwood.streams.stream import BadRow, Chunk, Stream


def errors(predictions, y, weights=None):
    """MAE, RMSE and R² of rows, which may be of different weights."""
    weights = [1.0] * len(y) if weights is None else weights
    if not len(y):
        return (math.nan, math.nan, math.nan)
    total = math.fsum(weights)

    def mean(values):
        return math.fsum(w * value for w, value in zip(weights, values, strict=True)) / total

    center = mean(y)
    absolute = mean([abs(b - a) for a, b in zip(predictions, y, strict=True)])
    square = mean([(b - a) ** 2 for a, b in zip(predictions, y, strict=True)])
    variance = mean([(b - center) ** 2 for b in y])
    varies = len({b for w, b in zip(weights, y, strict=True) if w > 0}) > 1
    return absolute, math.sqrt(square), 1 - square / variance if varies else math.nan


def faded_errors(predictions, y, fade):
    """The errors where a row that has k rows after it weighs fade ** k."""
    return errors(predictions, y, [fade**later for later in range(len(y))][::-1])


def window_errors(predictions, y, window):
    """The errors of the last rows."""
    return errors(predictions[-window:], y[-window:])


def curve_rows(rows, interval=100, most=400):
    """After which rows there are points: every second one goes when there are too many."""
    points = []
    for row in range(1, rows + 1):
        if row % interval == 0:
            points.append(row)
            if len(points) == most:
                points, interval = points[1::2], 2 * interval
    if rows and points[-1:] != [rows]:
        points.append(rows)
    return points


def curve(predictions, y, fade, window):
    """The points of the learning curve: rows, and the nine errors after them."""
    return [
        (
            row,
            *errors(predictions[:row], y[:row]),
            *faded_errors(predictions[:row], y[:row], fade),
            *window_errors(predictions[:row], y[:row], window),
        )
        for row in curve_rows(len(y))
    ]


def schedule(count, delay=None, times=None):
    """The order in which rows are predicted and learned, as pairs of a verb and a row.

    Without a delay, each row is learned at once; late by rows, row i - delay is learned after row
    i is predicted; late by seconds, a row is learned before the first that is so much later. What
    is still to learn at the end is learned then.
    """
    events = []
    learned = 0
    for row in range(count):
        if times is not None:
            while learned < row and is_due(times[: row + 1], learned, delay):
                events.append(("learn", learned))
                learned += 1
        events.append(("predict", row))
        if times is None and row >= (delay or 0):
            events.append(("learn", learned))
            learned += 1
    return events + [("learn", row) for row in range(learned, count)]


def is_due(times, row, delay):
    """Whether the label of a row is there at the last of some times."""
    known = [time for time in times if time is not None and math.isfinite(time)]
    if not known:
        return False
    earlier = [time for time in times[: row + 1] if time is not None and math.isfinite(time)]
    moment = max(earlier) if earlier else known[0]
    return moment + delay <= max(known)


def run(model, rows, delay=None, times=None):
    """Predict and learn rows by the schedule; return the predictions, and the order of learning."""
    predictions = [math.nan] * len(rows)
    order = []
    for verb, row in schedule(len(rows), delay, times):
        x, y = rows[row]
        own = {"id": row} if delay is not None and isinstance(model, StoredModel) else {}
        if verb == "predict":
            predictions[row] = model.predict_one(x, **own)
        else:
            model.learn_one(x, y, **own)
            order.append(row)
    return predictions, order


class ListStream(Stream):
    """A stream of a list: of (x, y), of (x, y, time), and of reasons for which rows are bad.

    Parameters
    ----------
    rows : list
        Each x has the same keys; a text among its values makes a column one of categories.
    file_rows : int, optional
        After how many rows the next file starts.
    """

    unit = "line"

    def __init__(self, rows, file_rows=None):
        good = [row for row in rows if not isinstance(row, str)]
        names = list(good[0][0]) if good else []
        texts = {name: any(isinstance(row[0][name], str) for row in good) for name in names}
        features = {name: "category" if texts[name] else "number" for name in names}
        timed = any(len(row) == 3 for row in good)
        super().__init__("a list", features, "y", len(rows), len(rows), time="t" if timed else None)
        self.rows = rows
        self.file_rows = file_rows or max(len(rows), 1)

    def chunks(self, start=None, most_rows=8192):
        first = 0 if start is None else start["row"]
        files = range(0, len(self.rows), self.file_rows)
        cuts = {first, len(self.rows), *(cut for cut in files if cut > first)}
        for begin, end in pairwise(sorted(cuts)):
            for row in range(begin, end, most_rows):
                yield self._chunk(row, min(row + most_rows, end))

    def _chunk(self, start, stop):
        file = start // self.file_rows
        source = f"file {file}"
        good, numbers, bad = [], [], []
        for place in range(start, stop):
            row, number = self.rows[place], place - file * self.file_rows + 1
            if isinstance(row, str):
                bad.append(BadRow(source, "line", number, row, after=len(good)))
            else:
                good.append(row)
                numbers.append(number)
        columns = {
            name: [row[0][name] for row in good]
            if kind == "category"
            else np.array([row[0][name] for row in good], dtype=float)
            for name, kind in self.features.items()
        }
        return Chunk(
            columns,
            np.array([row[1] for row in good], dtype=float),
            source,
            np.array(numbers, dtype=np.int64),
            {"row": stop},
            stop,
            bad,
            None if self.time is None else np.array([row[2] for row in good], dtype=float),
        )

    @property
    def fingerprint(self):
        return "a list"
