"""What came before: a ring of the last values of each series, read and written row by row."""

from cpython.dict cimport PyDict_SetItem
from libc.math cimport INFINITY, NAN, fabs

import numpy as np

from sapwood.rows.encoded import EncodedRow

__all__ = ["History", "NextRow", "key_bytes"]

cdef const double[:, ::1] NO_ROWS = np.empty((0, 1))
cdef const long long[::1] NO_ORDER = np.empty(0, np.int64)
cdef type encoded_row = EncodedRow

cdef enum:
    KEY_BYTES = 160   # of a series: its tuple, its places in a dict and in a list
    PART_BYTES = 32   # of a number in its key, and of the place that it has there
    TEXT_BYTES = 64   # of a text there, without its characters


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
    key_bytes : int
        Bytes of all keys.
    """

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
        self.set_tables(values, starts, counts, used)
        self.key_bytes = sum([key_bytes(key) for key in places])
        self.clock = clock
        self.depth = depth
        self.names, self.wanted = (), np.empty((0, 3), np.int64)

    cdef int set_tables(self, values, starts, counts, used) except -1:
        self.value_view, self.start_view = values, starts
        self.count_view, self.used_view = counts, used
        self.values, self.starts, self.counts, self.used = values, starts, counts, used
        return 0

    def want(self, tuple names not None, const long long[:, ::1] wanted not None):
        """Set what `next_row` adds to rows.

        Parameters
        ----------
        names : tuple
            Of the features.
        wanted : array of int, shape (features, 3)
            As for `features`.
        """
        if wanted.shape[0] != len(names) or wanted.shape[1] != 3:
            raise ValueError("the names and what is wanted do not fit together")
        self.names, self.wanted = names, wanted

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
            The column, the span, and 0 for the value so many rows before; or the first row
            back, at least 1, of a mean over so many rows.
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
            Larger ones that hold the same values, starts, counts and used, and their depth.

        Returns
        -------
        int
            The number of the last row in its series; -1 if there is none, or if other rows became
            past since the clock.
        """
        cdef object new_values = self.values, new_starts = self.starts
        cdef object new_counts = self.counts, new_used = self.used
        cdef Py_ssize_t depth = self.depth
        if tables is not None:
            new_values, new_starts, new_counts, new_used, depth = tables
        cdef double[:, ::1] values = new_values
        cdef long long[::1] starts = new_starts, counts = new_counts, used = new_used
        cdef Py_ssize_t row, slot = 0, column, columns = rows.shape[1]
        if clock != self.clock or groups.shape[0] == 0:
            return -1
        self.add(added)
        # From here on nothing raises, and no other code runs.
        for row in range(groups.shape[0]):
            slot = slots[groups[row]]
            if is_new[groups[row]] and ordinals[row] == 0:
                starts[slot] = counts[slot] = self.clock
            elif self.starts_over(values, starts, counts, depth, slot, rows[row, columns - 1]):
                starts[slot] = counts[slot]
            for column in range(columns):
                values[slot, column * depth + counts[slot] % depth] = rows[row, column]
            counts[slot] += 1
            used[slot] = self.clock
            self.clock += 1
        if tables is not None:
            self.value_view, self.start_view = values, starts
            self.count_view, self.used_view = counts, used
            self.values, self.starts, self.counts, self.used = (
                new_values, new_starts, new_counts, new_used
            )
            self.depth = depth
        return counts[slot] - 1

    def next_row(self, x, key):
        """Return a copy of the next row of a series with its lags, None where one is not known.

        Parameters
        ----------
        x : mapping
            The row. An `EncodedRow` stays one.
        key : tuple
            Of the series, which need not be known.

        Returns
        -------
        dict, or None
            None if the row has a feature of one of these names already.
        """
        cdef Py_ssize_t feature
        cdef long long slot = self.places.get(key, -1)
        cdef double value
        cdef object row = x.copy() if type(x) is dict else encoded_row(x) if (
            type(x) is encoded_row
        ) else dict(x)
        cdef Py_ssize_t given = len(row)
        for feature in range(self.wanted.shape[0]):
            value = _feature(
                self.value_view, self.start_view, self.count_view, self.depth, 0, NO_ORDER, 0,
                slot, NO_ROWS, self.wanted[feature, 0], self.wanted[feature, 1],
                self.wanted[feature, 2],
            )
            PyDict_SetItem(row, self.names[feature], value if value == value else None)
        return row if len(row) == given + self.wanted.shape[0] else None

    def push_one(self, key, list row not None):
        """Let a row of a known series become past, and return its number there."""
        cdef Py_ssize_t slot = self.places[key], column, columns = len(row)
        cdef double value
        if columns * self.depth != self.value_view.shape[1]:
            raise ValueError("the row has another number of columns")
        # From here on nothing raises, as all values are floats, and no other code runs.
        for column in range(columns):
            value = row[column]
            self.value_view[
                slot, column * self.depth + self.count_view[slot] % self.depth
            ] = value
        self.count_view[slot] += 1
        self.used_view[slot] = self.clock
        self.clock += 1
        return self.count_view[slot] - 1

    cdef bint starts_over(
        self, const double[:, ::1] values, const long long[::1] starts,
        const long long[::1] counts, Py_ssize_t depth, Py_ssize_t slot, double last,
    ) noexcept:
        """Whether the past of a series is forgotten before a row, given its last value."""
        return False

    def settle(self, places, rows):
        """Make the rows of a batch ready to be read and kept; return the depth that they need.

        Parameters
        ----------
        places : SeriesPlaces
            Where the rows go.
        rows : array of float
            What is remembered of them; may be changed, which has no effect the second time.
        """
        return self.depth

    def fits(self, key, list row not None):
        """Whether `push_one` can take a row of a known series: its ring is deep enough."""
        return True

    cdef int add(self, dict added) except -1:
        """Let there be new series, in place of those that have their rows; all, or none."""
        cdef Py_ssize_t known = len(self.keys)
        cdef list evicted = [self.keys[slot] for slot in added.values() if slot < known]
        cdef list fresh = [key for key in added if key not in self.places]
        evicted = [key for key in evicted if key not in added]
        cdef long long grown = sum([key_bytes(key) for key in fresh]) - sum(
            [key_bytes(key) for key in evicted]
        )
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
        self.key_bytes += grown
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


def key_bytes(tuple key not None):
    """Return the bytes of the key of a series, wherever it stands: the same after loading.

    Examples
    --------
    >>> key_bytes(("shop 1", 7)) - key_bytes(("", 7))
    6
    """
    cdef long long found = KEY_BYTES
    for part in key:
        found += PART_BYTES
        if type(part) is str:
            found += TEXT_BYTES + len(<str>part) * (1 if part.isascii() else 4)
    return found


cdef class NextRow:
    """The next row of a series, which is not past yet.

    Parameters
    ----------
    past : History
        Where it will be past.
    key : tuple
        Of its series.
    values : list of float
        What is remembered of it.
    most : int
        How many series are remembered at most.
    """

    cdef readonly History history
    cdef readonly object key
    cdef readonly list values
    cdef readonly long long most, clock

    def __cinit__(self, History past not None, key, list values not None, long long most):
        self.history, self.key, self.values, self.most = past, key, values, most
        self.clock = past.clock

    @property
    def is_due(self):
        """Whether it is the next to become past: neither it nor another has since then."""
        return self.clock == self.history.clock

    @property
    def number(self):
        """The number that the row will have in its series."""
        slot = self.history.places.get(self.key)
        return self.history.clock if slot is None else int(self.history.counts[slot])

    def push(self):
        """Let the row become past, and return its number in its series."""
        if self.key in self.history.places and self.history.fits(self.key, self.values):
            return self.history.push_one(self.key, self.values)
        from sapwood.lags.history import planned

        rows = np.array([self.values])
        return planned(self.history, [self.key], 1, self.most).push(rows)


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
    long long first,
) noexcept nogil:
    """Return the value so many rows before; or the mean of the known ones, from a first row on."""
    cdef double mean = 0.0, value
    cdef long long back, known = 0
    for back in range(first if first else span, first + span if first else span + 1):
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
