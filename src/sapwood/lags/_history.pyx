"""What came before: a ring of the last values of each series, read and written row by row."""

from libc.math cimport INFINITY, NAN, fabs

import numpy as np

__all__ = ["History"]

NO_ROWS, NO_ORDER = np.empty((0, 1)), np.empty(0, np.int64)


cdef class History:
    """The last values of some columns, for each of many series.

    A series has a row of `values`, in which each column has its own ring of `depth` places. Rows of
    a series are numbered; a new one starts by the number of all rows before it, so that a number
    is never that of two rows, even if a series was forgotten and has come again.

    Parameters
    ----------
    places : dict
        The row of each series, by its key.
    values : array of float, shape (room, columns * depth)
        The rings.
    starts, counts, used : arrays of int, shape (room,)
        The number of the first row of each series, that of the next one, and how many rows of all
        series were there before its latest.
    clock : int
        How many rows there were of all series.
    depth : int
        How many values each ring holds.

    Attributes
    ----------
    keys : list
        The key of each series, by its row.
    """

    cdef readonly dict places
    cdef readonly list keys
    cdef readonly object values, starts, counts, used
    cdef readonly long long clock
    cdef readonly Py_ssize_t depth
    cdef public object oldest  # where series to evict are looked for: see history.py

    def __init__(
        self,
        dict places not None,
        object values,
        object starts,
        object counts,
        object used,
        long long clock,
        Py_ssize_t depth,
    ):
        self.places, self.keys = places, sorted(places, key=places.__getitem__)
        self.values, self.starts, self.counts, self.used = values, starts, counts, used
        self.clock = clock
        self.depth = depth

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

        Parameters
        ----------
        groups : array of int, shape (n,)
            The series of each row, as one of those of this batch.
        ordinals : array of int, shape (n,)
            How many rows of this batch are before it in its series.
        order, offsets : arrays of int
            The rows sorted by series, and where each series starts among them.
        slots : array of int
            Where the past of each series is, -1 if it has none.
        rows : array of float, shape (n, columns)
            The values of this batch, NaN where one is not known.
        wanted : array of int, shape (features, 3)
            The column, the span, and whether a mean over it is wanted instead of a value.
        out : array of float, shape (features, n)
            What was found, NaN where nothing is known.
        """
        cdef const double[:, ::1] values = self.values
        cdef const long long[::1] starts = self.starts, counts = self.counts
        cdef Py_ssize_t row, feature
        with nogil:
            for feature in range(wanted.shape[0]):
                for row in range(groups.shape[0]):
                    out[feature, row] = _feature(
                        values, starts, counts, self.depth, ordinals[row], order,
                        offsets[groups[row]], slots[groups[row]], rows, wanted[feature, 0],
                        wanted[feature, 1], wanted[feature, 2],
                    )

    def push(
        self,
        const long long[::1] groups not None,
        const long long[::1] ordinals not None,
        const long long[::1] slots not None,
        const unsigned char[::1] is_new not None,
        const double[:, ::1] rows not None,
        dict added not None,
        long long clock,
        object tables,
    ):
        """Let rows become past: all of them, or none if this raises or returns -1.

        Parameters
        ----------
        groups, ordinals, rows
            As for `features`.
        slots, is_new : arrays
            Where each series goes, and whether it starts there.
        added : dict
            The row of each series that is new. One that had that row is forgotten for it.
        clock : int
            How many rows there were when all of this was planned.
        tables : tuple of arrays, optional
            Larger ones that hold the same values, starts, counts and used.

        Returns
        -------
        int
            The number of the last row in its series; -1 if there is none, or if other rows became
            past since the clock.
        """
        cdef object new_values = self.values, new_starts = self.starts
        cdef object new_counts = self.counts, new_used = self.used
        if tables is not None:
            new_values, new_starts, new_counts, new_used = tables
        cdef double[:, ::1] values = new_values
        cdef long long[::1] starts = new_starts, counts = new_counts, used = new_used
        cdef Py_ssize_t row, slot = 0, column, columns = rows.shape[1], depth = self.depth
        if clock != self.clock or groups.shape[0] == 0:
            return -1
        self.add(added)
        # From here on nothing raises, and no other code runs.
        for row in range(groups.shape[0]):
            slot = slots[groups[row]]
            if is_new[groups[row]] and ordinals[row] == 0:
                starts[slot] = counts[slot] = self.clock
            for column in range(columns):
                values[slot, column * depth + counts[slot] % depth] = rows[row, column]
            counts[slot] += 1
            used[slot] = self.clock
            self.clock += 1
        self.values, self.starts, self.counts, self.used = (
            new_values, new_starts, new_counts, new_used
        )
        return counts[slot] - 1

    def before_next(self, key, const long long[:, ::1] wanted not None):
        """Return what is known of the rows before the next one of a series, None where nothing is.

        Parameters
        ----------
        key : tuple
            Of the series, which need not be known.
        wanted : array of int, shape (features, 3)
            As for `features`.
        """
        cdef const double[:, ::1] values = self.values
        cdef const long long[::1] starts = self.starts, counts = self.counts
        cdef const double[:, ::1] none = NO_ROWS
        cdef const long long[::1] nothing = NO_ORDER
        cdef Py_ssize_t feature
        cdef long long slot = self.places.get(key, -1)
        cdef double value
        cdef list found = []
        for feature in range(wanted.shape[0]):
            value = _feature(
                values, starts, counts, self.depth, 0, nothing, 0, slot, none,
                wanted[feature, 0], wanted[feature, 1], wanted[feature, 2],
            )
            found.append(value if value == value else None)
        return found

    def push_one(self, key, list row not None):
        """Let a row of a known series become past, and return its number there."""
        cdef double[:, ::1] values = self.values
        cdef long long[::1] counts = self.counts, used = self.used
        cdef Py_ssize_t slot = self.places[key], column, columns = len(row)
        cdef double value
        if columns * self.depth != values.shape[1]:
            raise ValueError("the row has another number of columns")
        # From here on nothing raises, as all values are floats, and no other code runs.
        for column in range(columns):
            value = row[column]
            values[slot, column * self.depth + counts[slot] % self.depth] = value
        counts[slot] += 1
        used[slot] = self.clock
        self.clock += 1
        return counts[slot] - 1

    cdef int add(self, dict added) except -1:
        """Let there be new series, in place of those that have their rows; all, or none."""
        cdef Py_ssize_t known = len(self.keys)
        cdef list evicted = [self.keys[slot] for slot in added.values() if slot < known]
        cdef list fresh = [key for key in added if key not in self.places]
        evicted = [key for key in evicted if key not in added]
        try:
            # Only this may fail, for want of memory.
            self.keys.extend([None] * sum([slot >= known for slot in added.values()]))
            for key in fresh:
                self.places[key] = added[key]
        except BaseException:
            del self.keys[known:]
            for key in fresh:
                self.places.pop(key, None)
            raise
        for key in evicted:
            del self.places[key]
        for key, slot in added.items():
            self.places[key] = slot
            self.keys[slot] = key
        return 0

    def fill(self, Py_ssize_t slot, long long number, Py_ssize_t column, double value):
        """Write a value of a row that is past already, if that is still remembered."""
        cdef double[:, ::1] values = self.values
        cdef const long long[::1] starts = self.starts, counts = self.counts
        if starts[slot] <= number < counts[slot] and counts[slot] - number <= self.depth:
            values[slot, column * self.depth + number % self.depth] = value


cdef double _feature(
    const double[:, ::1] values,
    const long long[::1] starts,
    const long long[::1] counts,
    Py_ssize_t depth,
    long long ordinal,
    const long long[::1] order,
    long long offset,
    long long slot,
    const double[:, ::1] rows,
    long long column,
    long long span,
    bint is_mean,
) noexcept nogil:
    """Return the value so many rows before, or the mean of those known since then."""
    cdef double mean = 0.0, value
    cdef long long back, known = 0
    for back in range(1 if is_mean else span, span + 1):
        if back <= ordinal:
            value = rows[order[offset + ordinal - back], column]
        elif slot >= 0 and back - ordinal <= counts[slot] - starts[slot]:
            value = values[slot, column * depth + (counts[slot] - (back - ordinal)) % depth]
        else:
            break
        if value == value:
            known += 1
            mean += (value - mean) / known
    return mean if known and fabs(mean) < INFINITY else NAN
