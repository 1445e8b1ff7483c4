"""Dicts as lists of terms: of each name that a row has a key of 64 bits, and a number.

A number is a term of its name. A text is two terms of value 1: of its name, and of its name and
value together. Keys of names are odd, those of names and values even.
"""

from collections.abc import Mapping

import numpy as np

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc

from sapwood.corrector._pending cimport id_key_of, number_of, row_key_of

from sapwood import validation
from sapwood.corrector.tokens import EMPTY

cdef uint64_t NONE_KNOWN = EMPTY


cdef class SparseRows:
    """Rows as terms.

    Parameters
    ----------
    rows : sequence of dict
        Names and values; None and NaN are absent.
    zeros_are_absent : bool
        Whether 0 is, too.
    """

    def __cinit__(self, rows, bint zeros_are_absent):
        self.count = self.terms = 0
        self.room = 64
        self.starts = <Py_ssize_t*>malloc((<size_t>len(rows) + 1) * sizeof(Py_ssize_t))
        self.tokens = <uint64_t*>malloc((<size_t>len(rows) + 1) * sizeof(uint64_t))
        self.keys = <uint64_t*>malloc(<size_t>self.room * sizeof(uint64_t))
        self.values = <double*>malloc(<size_t>self.room * sizeof(double))
        if not (self.starts and self.tokens and self.keys and self.values):
            raise MemoryError
        self.starts[0] = 0
        for x in rows:
            self.add_row(x, zeros_are_absent)

    def __dealloc__(self):
        free(self.starts)
        free(self.tokens)
        free(self.keys)
        free(self.values)

    cdef int add_row(self, object x, bint zeros_are_absent) except -1:
        cdef uint64_t key, token = 0
        cdef double number
        if not isinstance(x, Mapping):
            raise ValueError(
                f"X[{self.count}] = {validation.shown(x)}: a dict of features is expected"
            )
        for name, value in x.items():
            if type(value) is not float:
                value = plain(name, value, self.count)
                if value is None:
                    continue
            key = name_key(name)
            if type(value) is str:
                self.add(key, 1.0)
                key = id_key_of(key ^ number_of(value, 1)) & ~<uint64_t>1
                self.add(key, 1.0)
                token += key
                continue
            number = value
            if number != number or (zeros_are_absent and number == 0.0):
                continue
            if number - number != 0.0:
                plain(name, value, self.count)
            self.add(key, number)
            token += id_key_of(key ^ number_of(value, 1))
        token = row_key_of(token)
        self.tokens[self.count] = token if token else NONE_KNOWN
        self.count += 1
        self.starts[self.count] = self.terms
        return 0

    cdef int add(self, uint64_t key, double value) except -1:
        cdef void* more
        if self.terms == self.room:
            more = realloc(self.keys, 2 * <size_t>self.room * sizeof(uint64_t))
            if not more:
                raise MemoryError
            self.keys = <uint64_t*>more
            more = realloc(self.values, 2 * <size_t>self.room * sizeof(double))
            if not more:
                raise MemoryError
            self.values = <double*>more
            self.room *= 2
        self.keys[self.terms], self.values[self.terms] = key, value
        self.terms += 1
        return 0

    def token(self, Py_ssize_t row):
        """Return the token of a row.

        Parameters
        ----------
        row : int
            Which.
        """
        return self.tokens[row]

    def all_tokens(self):
        """Return the tokens of all rows."""
        found = np.empty(self.count, np.uint64)
        cdef uint64_t[::1] view = found
        cdef Py_ssize_t row
        for row in range(self.count):
            view[row] = self.tokens[row]
        return found

    def has_any(self, Py_ssize_t row, wanted):
        """Return whether a row has a name whose key is one of some.

        Parameters
        ----------
        row : int
            Which.
        wanted : set of int
            The keys.
        """
        cdef Py_ssize_t term
        for term in range(self.starts[row], self.starts[row + 1]):
            if self.keys[term] in wanted:
                return True
        return False


cdef uint64_t name_key(object name) except? 0:
    """The key of a name, which is odd."""
    return id_key_of(number_of(name, 2)) | 1


def key_of_name(name):
    """Return the key of a name.

    Parameters
    ----------
    name : str or int
        The name.
    """
    return name_key(name)


cdef object plain(object name, object value, Py_ssize_t row):
    """Return a value as a float or a text, or None if it is missing."""
    try:
        found = validation.plain(value)
        if not isinstance(found, str):
            validation.check_number(found)
    except validation.Unfit as rule:
        raise ValueError(
            validation.feature_sentence(name, value, row, str(rule))
        ) from None
    return found if found is None or isinstance(found, str) else float(found)
