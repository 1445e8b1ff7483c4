"""What came before: a ring of the last values of each series, read and written row by row."""

from libc.math cimport INFINITY, NAN, fabs

import numpy as np

__all__ = ["History"]


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
    """

    cdef readonly dict places
    cdef readonly object values, starts, counts, used
    cdef readonly long long clock
    cdef readonly Py_ssize_t depth

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
        self.places = places
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
        dict places not None,
        object tables,
    ):
        """Let rows become past: all of them, or none if this raises.

        Parameters
        ----------
        groups, ordinals, rows
            As for `features`.
        slots, is_new : arrays
            Where each series goes, and whether it starts there.
        places : dict
            The row of each series once these rows are there.
        tables : tuple of arrays, optional
            Larger ones that hold the same values, starts, counts and used.

        Returns
        -------
        int
            The number of the last row in its series.
        """
        cdef object new_values = self.values, new_starts = self.starts
        cdef object new_counts = self.counts, new_used = self.used
        if tables is not None:
            new_values, new_starts, new_counts, new_used = tables
        cdef double[:, ::1] values = new_values
        cdef long long[::1] starts = new_starts, counts = new_counts, used = new_used
        cdef Py_ssize_t row, slot = 0, column, columns = rows.shape[1], depth = self.depth
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
        self.places = places
        self.values, self.starts, self.counts, self.used = (
            new_values, new_starts, new_counts, new_used
        )
        return counts[slot] - 1

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
