"""Lags by time: rings of values whose last column is the time of each row.

The times of a series never go down, so that a lookup is a bisection. A row whose time is missing,
or before that of the row ahead of it, counts as simultaneous with that. One that is earlier by more
than the longest span starts the series over: its past is forgotten.

A lag of s at time t is the known value whose time is nearest to t - s, at most a tolerance away; of
two at the same distance the earlier one, of several rows at the same time the last one that is
known. A mean over s is that of the known values in [t - s, t), or with a horizon h in
(t - h - s, t - h].
"""

from cpython.dict cimport PyDict_SetItem
from libc.math cimport INFINITY, NAN, fabs

import numpy as np

from sapwood.lags._history cimport History
from sapwood.rows.encoded import EncodedRow

__all__ = ["DEEPEST", "LEAST_DEPTH", "TimedHistory"]

cdef enum:
    DEEPEST_RING = 131072
    LEAST_RING = 64

cdef type encoded_row = EncodedRow
DEEPEST, LEAST_DEPTH = DEEPEST_RING, LEAST_RING


cdef struct Series:
    const double *ring       # of the columns, each of `depth` values
    Py_ssize_t depth
    long long next           # the number of the next row
    long long kept           # rows in the ring
    const double *rows       # the batch, of `width` values each
    const long long *order   # the rows of the series in the batch
    Py_ssize_t width         # columns with the time, which is the last one


cdef struct Wanted:
    Py_ssize_t column
    bint is_mean
    double span
    double tolerance


cdef inline double value_at(const Series *s, long long place, Py_ssize_t column) noexcept nogil:
    """Return a value of a row: those of the ring come first, then those of the batch."""
    if place < s.kept:
        return s.ring[column * s.depth + (s.next - s.kept + place) % s.depth]
    return s.rows[s.order[place - s.kept] * s.width + column]


cdef inline double time_at(const Series *s, long long place) noexcept nogil:
    return value_at(s, place, s.width - 1)


cdef long long rows_before(
    const Series *s, long long low, long long high, double time, bint inclusive
) noexcept nogil:
    """Return the first place from `low` to `high` whose time is not before, or is after, a time."""
    cdef long long middle
    cdef double at
    while low < high:
        middle = (low + high) // 2
        at = time_at(s, middle)
        if at < time or (inclusive and at == time):
            low = middle + 1
        else:
            high = middle
    return low


cdef double lag(
    const Series *s, long long first, long long end, double time, const Wanted *wanted,
    double horizon,
) noexcept nogil:
    """Return the known value nearest to a span before a time, NaN if there is none."""
    cdef double goal = time - wanted.span, best = NAN, distance = INFINITY, value, at, found
    cdef double latest = min(goal + wanted.tolerance, time - horizon)
    cdef long long middle = rows_before(s, first, end, goal, True), place = middle - 1
    while place >= first:
        at = time_at(s, place)
        if not goal - at <= wanted.tolerance:
            break
        value = value_at(s, place, wanted.column)
        if value == value:
            best, distance = value, goal - at
            break
        place -= 1
    place = middle
    found = INFINITY
    while place < end:
        at = time_at(s, place)
        if at > latest or at > found or at - goal >= distance:
            break
        value = value_at(s, place, wanted.column)
        if value == value:
            best, found = value, at
        place += 1
    return best


cdef double mean(
    const Series *s, long long first, long long end, double time, const Wanted *wanted,
    double horizon,
) noexcept nogil:
    """Return the mean of the known values of a window before a time, NaN if there is none."""
    cdef double found = 0.0, value
    cdef long long place, known = 0, start, stop
    if horizon > 0.0:
        start = rows_before(s, first, end, time - horizon - wanted.span, True)
        stop = rows_before(s, first, end, time - horizon, True)
    else:
        start = rows_before(s, first, end, time - wanted.span, False)
        stop = rows_before(s, first, end, time, False)
    for place in range(start, stop):
        value = value_at(s, place, wanted.column)
        if value == value:
            known += 1
            found += (value - found) / known
    return found if known and fabs(found) < INFINITY else NAN


cdef class TimedHistory(History):
    """The last values of some columns and the time of each row, for each of many series.

    Parameters
    ----------
    places, values, starts, counts, used, clock, depth
        As for `History`; the last column is the time, in seconds, minus infinity for rows before
        the first time. The rings become deeper as long as rows within reach do not fit in, up to
        `DEEPEST` rows.
    spans, tolerances : array of float
        Of each feature, in seconds.
    horizon : float
        Seconds before a row within which no value is used.
    """

    cdef double[::1] spans, tolerances
    cdef double horizon
    cdef readonly double reach  # seconds before a row within which rows may be looked at

    def __init__(
        self, dict places not None, object values, object starts, object counts, object used,
        long long clock, Py_ssize_t depth, object spans, object tolerances, double horizon,
    ):
        super().__init__(places, values, starts, counts, used, clock, depth)
        self.spans, self.tolerances = np.array(spans), np.array(tolerances)
        self.horizon = horizon
        self.reach = float(np.max(np.add(spans, tolerances))) + horizon

    cdef Series series_of(self, long long slot, const double[:, ::1] rows) noexcept:
        """Return a series; slot is -1 if it is new."""
        cdef Series s
        s.depth, s.width = self.depth, self.value_view.shape[1] // self.depth
        s.ring, s.next, s.kept, s.rows, s.order = NULL, 0, 0, NULL, NULL
        if slot >= 0:
            s.ring = &self.value_view[slot, 0]
            s.next = self.count_view[slot]
            s.kept = min(s.next - self.start_view[slot], <long long>self.depth)
        if rows is not None and rows.shape[0]:
            s.rows = &rows[0, 0]
        return s

    cdef double settled(self, const Series *s, long long place, double time) noexcept nogil:
        """Return the time that a row at a place counts as."""
        cdef double latest = -INFINITY if place == 0 else time_at(s, place - 1)
        if not fabs(time) < 1e15:  # NaN too
            return latest
        return latest if latest - self.reach <= time < latest else time

    cdef long long needed(
        self, const Series *s, long long first, long long place, double time
    ) noexcept nogil:
        """Return how deep the ring must be to hold a row and those in its reach."""
        if time == -INFINITY:
            return 1
        return 1 + place - rows_before(s, max(first, place - DEEPEST_RING + 1), place,
                                       time - self.reach, False)

    cdef bint starts_over(
        self, const double[:, ::1] values, const long long[::1] starts,
        const long long[::1] counts, Py_ssize_t depth, Py_ssize_t slot, double last,
    ) noexcept:
        cdef Py_ssize_t width = values.shape[1] // depth
        if counts[slot] == starts[slot]:
            return False
        return last < values[slot, (width - 1) * depth + (counts[slot] - 1) % depth]

    def settle(self, places, rows):
        """Let each row have the time that it counts as; return the depth that they need."""
        cdef double[:, ::1] own = rows
        cdef const long long[::1] order = places.order, offsets = places.offsets
        cdef const long long[::1] slots = places.past
        cdef long long deepest = 0, first, place, end
        cdef Py_ssize_t group, groups = offsets.shape[0], last = own.shape[1] - 1
        cdef Series s
        cdef double time
        if own.shape[1] * self.depth != self.value_view.shape[1]:
            raise ValueError("the rows have another number of columns")
        for group in range(groups if own.shape[0] else 0):
            end = offsets[group + 1] if group + 1 < groups else order.shape[0]
            s = self.series_of(slots[group], own)
            s.order = &order[offsets[group]]
            first = 0
            for place in range(s.kept, s.kept + end - offsets[group]):
                time = self.settled(&s, place, time_at(&s, place))
                own[s.order[place - s.kept], last] = time
                if place and time < time_at(&s, place - 1):
                    first = place
                deepest = max(deepest, self.needed(&s, first, place, time))
        return self.deepened(deepest)

    cdef Py_ssize_t deepened(self, long long needed) noexcept:
        cdef Py_ssize_t depth = self.depth
        while depth < needed and depth < DEEPEST_RING:
            depth *= 2
        return depth

    def fits(self, key, list row not None):
        """Whether `push_one` can take a row of a known series: its ring is deep enough."""
        cdef Series s = self.series_of(self.places[key], None)
        cdef double time = self.settled(&s, s.kept, row[len(row) - 1])
        cdef long long first = s.kept if s.kept and time < time_at(&s, s.kept - 1) else 0
        return self.deepened(self.needed(&s, first, s.kept, time)) == self.depth

    def push_one(self, key, list row not None):
        """Let a row of a known series become past, and return its number there."""
        cdef Py_ssize_t slot = self.places[key]
        cdef Series s = self.series_of(slot, None)
        cdef double time = self.settled(&s, s.kept, row[len(row) - 1])
        if s.kept and time < time_at(&s, s.kept - 1):
            self.start_view[slot] = self.count_view[slot]
        return History.push_one(self, key, [*row[:-1], time])

    def features(
        self,
        const long long[::1] groups not None,
        const long long[::1] ordinals not None,
        const long long[::1] order not None,
        const long long[::1] offsets not None,
        const long long[::1] slots not None,
        const double[:, ::1] rows not None,
        const long long[:, ::1] wanted not None,
        double[:, ::1] out not None,
    ):
        """Write what is known of the rows before each; nothing is changed.

        Parameters are as for `History.features`; the rows were settled. Of `wanted` the columns
        count, and whether a mean is wanted.
        """
        cdef Py_ssize_t group, feature, count = offsets.shape[0]
        cdef long long place, end, first
        cdef double time
        cdef Series s
        cdef Wanted each
        for group in range(count if rows.shape[0] else 0):
            end = offsets[group + 1] if group + 1 < count else order.shape[0]
            s = self.series_of(slots[group], rows)
            s.order = &order[offsets[group]]
            first = 0
            with nogil:
                for place in range(s.kept, s.kept + end - offsets[group]):
                    time = time_at(&s, place)
                    if place and time < time_at(&s, place - 1):
                        first = place
                    first = max(first, place - DEEPEST_RING)
                    for feature in range(wanted.shape[0]):
                        each.column, each.is_mean = wanted[feature, 0], wanted[feature, 2] != 0
                        each.span, each.tolerance = self.spans[feature], self.tolerances[feature]
                        out[feature, s.order[place - s.kept]] = self.found(
                            &s, first, place, time, &each
                        )

    cdef double found(
        self, const Series *s, long long first, long long end, double time, const Wanted *wanted
    ) noexcept nogil:
        if time == -INFINITY:
            return NAN
        if wanted.is_mean:
            return mean(s, first, end, time, wanted, self.horizon)
        return lag(s, first, end, time, wanted, self.horizon)

    def next_row_at(self, x, key, double time):
        """Return a copy of the next row of a series with its lags, None where one is not known.

        Parameters
        ----------
        x : mapping
            The row. An `EncodedRow` stays one.
        key : tuple
            Of the series, which need not be known.
        time : float
            That of the row in seconds, NaN if it is missing.

        Returns
        -------
        dict, or None
            None if the row has a feature of one of these names already.
        """
        cdef Py_ssize_t feature
        cdef Series s = self.series_of(self.places.get(key, -1), None)
        cdef Wanted each
        cdef double value
        cdef object row = x.copy() if type(x) is dict else encoded_row(x) if (
            type(x) is encoded_row
        ) else dict(x)
        cdef Py_ssize_t given = len(row)
        cdef long long first = 0
        time = self.settled(&s, s.kept, time)
        if s.kept and time < time_at(&s, s.kept - 1):
            first = s.kept
        for feature in range(self.wanted.shape[0]):
            each.column, each.is_mean = self.wanted[feature, 0], self.wanted[feature, 2] != 0
            each.span, each.tolerance = self.spans[feature], self.tolerances[feature]
            value = self.found(&s, first, s.kept, time, &each)
            PyDict_SetItem(row, self.names[feature], value if value == value else None)
        return row if len(row) == given + self.wanted.shape[0] else None
