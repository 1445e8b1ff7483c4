"""Pages of doubles, one for each leaf, which kernels take and give back without the GIL."""

import numpy as np
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

cdef enum:
    LINE = 64  # bytes of a cache line, at whose beginning each page starts


cdef void give_back(double* page) noexcept nogil:
    """Free a page that `fresh` has made, or NULL."""
    if page != NULL:
        PyMem_RawFree((<void**>page - 1)[0])


cdef class Pages:
    """The pages of all leaves, each of the same size.

    Parameters
    ----------
    doubles : int
        The size of a page.
    room : int
        For how many leaves there is a place.
    """

    def __init__(self, Py_ssize_t doubles, Py_ssize_t room):
        self.doubles = doubles
        self.reserve(room)

    def __dealloc__(self):
        cdef Py_ssize_t leaf
        for leaf in range(self.room):
            give_back(self.at[leaf])
        PyMem_RawFree(self.at)

    cdef int reserve(self, Py_ssize_t room) except -1:
        """Have places for so many leaves; there are never fewer than before."""
        cdef Py_ssize_t leaf
        cdef double** at
        if room <= self.room:
            return 0
        at = <double**>PyMem_RawRealloc(self.at, room * sizeof(double*))
        if at == NULL:
            raise MemoryError
        for leaf in range(self.room, room):
            at[leaf] = NULL
        self.at, self.room = at, room
        return 0

    cdef double* fresh(self) noexcept nogil:
        """A page of zeros that belongs to no leaf yet; NULL if memory does not suffice.

        Where the memory begins is stored just before the page.
        """
        cdef void* memory = PyMem_RawCalloc(1, LINE + self.doubles * sizeof(double))
        cdef void** page
        if memory == NULL:
            return NULL
        page = <void**>((<uintptr_t>memory + LINE) // LINE * LINE)
        (page - 1)[0] = memory
        return <double*>page

    cdef void put(self, Py_ssize_t leaf, double* page) noexcept nogil:
        """Give a leaf another page, or none; the one that it had is freed."""
        give_back(self.at[leaf])
        self.at[leaf] = page

    cdef void move(self, Py_ssize_t leaf, Py_ssize_t place) noexcept nogil:
        """Give the page of a leaf to another, which has none, or is the same."""
        if leaf != place:
            self.at[place], self.at[leaf] = self.at[leaf], NULL

    cdef void swap(self, Pages other) noexcept nogil:
        """Exchange all pages with another table of pages."""
        self.at, other.at = other.at, self.at
        self.room, other.room = other.room, self.room
        self.doubles, other.doubles = other.doubles, self.doubles

    def set(self, Py_ssize_t leaf, const double[::1] content):
        """Give a leaf a page with such a content, or none."""
        cdef double* page = NULL
        if not 0 <= leaf < self.room:
            raise IndexError(leaf)
        if content is not None:
            if content.shape[0] != self.doubles:
                raise ValueError(f"a page has {self.doubles} doubles, not {content.shape[0]}")
            page = self.fresh()
            if page == NULL:
                raise MemoryError
            if self.doubles:
                memcpy(page, &content[0], self.doubles * sizeof(double))
        self.put(leaf, page)

    def first(self, Py_ssize_t leaves):
        """Return copies of the pages of the first few leaves."""
        cdef list pages = [None] * leaves
        cdef Py_ssize_t leaf
        for leaf in range(leaves):
            pages[leaf] = self.get(leaf)
        return pages

    def get(self, Py_ssize_t leaf):
        """Return a copy of the page of a leaf, None if it has none."""
        cdef double[::1] content
        if not 0 <= leaf < self.room:
            raise IndexError(leaf)
        if self.at[leaf] == NULL:
            return None
        copy = np.empty(self.doubles)
        if self.doubles:
            content = copy
            memcpy(&content[0], self.at[leaf], self.doubles * sizeof(double))
        return copy
