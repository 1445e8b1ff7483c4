"""The leaves of a tree: their records, model pages, statistics pages and observers."""

import numpy as np

from sapwood.tree._pages cimport give_back


def table_room(Py_ssize_t rows):
    """Return how many rows a table should have room for that needs so many."""
    return max(16, rows + rows // 2)


def longer(table, Py_ssize_t rows):
    """Return a table, or a longer copy if it has fewer rows than are needed."""
    return table if rows <= len(table) else lengthened(table, table_room(rows))


def lengthened(table, Py_ssize_t rows):
    """Return a copy of a table with so many rows."""
    copy = np.zeros(rows, table.dtype)
    copy.view(np.uint8)[: table.nbytes] = table.view(np.uint8)
    return copy


cdef class Watchers:
    """The observers of a leaf.

    Parameters
    ----------
    observers : list
        One per feature.
    """

    def __init__(self, list observers not None):
        cdef Py_ssize_t place
        cdef Py_ssize_t[::1] addresses = np.zeros(len(observers) + 1, np.intp)
        for place in range(len(observers)):
            addresses[place] = <Py_ssize_t><void*>observers[place]._store
        self.observers, self.addresses = observers, addresses.base
        self.stores = <void**>&addresses[0]


cdef class Leaves:
    """The leaves of a tree. Their numbers are rows of `leaf_table`."""

    def __dealloc__(self):
        self.drop_spares()

    def set_leaves(
        self, leaves, Py_ssize_t leaf_count, Py_ssize_t model_doubles, Py_ssize_t watch_doubles
    ):
        """Take over the records of leaves, without pages; `set_leaf` is to follow for each."""
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
        self.model_table = Pages(model_doubles, len(leaves))
        self.watch_table = Pages(watch_doubles, len(leaves))
        self.watchers = [None] * len(leaves)
        self.use_stores(np.zeros(len(leaves), np.intp))
        self.leaf_table, self.leaf_room, self.leaf_count = leaves, len(leaves), leaf_count
        self.leaves = <LeafRecord*>&leaf_bytes[0]
        self.models, self.watches = self.model_table.at, self.watch_table.at

    def reserve_leaves(self, leaves):
        """Take over a longer table with the same records, and reserve as many pages."""
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
        cdef Py_ssize_t room = len(leaves)
        stores = np.zeros(room, np.intp)
        stores[: self.leaf_room] = self.store_table
        watchers = self.watchers + [None] * (room - self.leaf_room)
        self.model_table.reserve(room)
        self.models = self.model_table.at
        self.watch_table.reserve(room)
        self.watches = self.watch_table.at
        self.use_stores(stores)
        self.watchers, self.leaf_table, self.leaf_room = watchers, leaves, room
        self.leaves = <LeafRecord*>&leaf_bytes[0]

    def use_stores(self, Py_ssize_t[::1] table):
        """Take over where the stores of observers are."""
        self.store_table = table.base
        self.stores = <void***>&table[0]

    def set_leaf(self, Py_ssize_t leaf, model, watch, observers=None):
        """Give a leaf its pages, and what watches its numbers; None for what it does without."""
        watchers = None if observers is None else Watchers(observers)
        self.model_table.set(leaf, model)
        self.watch_table.set(leaf, watch)
        self.put_watchers(leaf, watchers)
        self.leaves[leaf].watching = watch is not None

    cdef void put_watchers(self, Py_ssize_t leaf, Watchers watchers) noexcept:
        """Let observers watch the numbers of a leaf, or none."""
        self.watchers[leaf] = watchers
        self.stores[leaf] = NULL if watchers is None else watchers.stores

    def model_page(self, Py_ssize_t leaf):
        """Return a copy of the model of a leaf."""
        return self.model_table.get(leaf)

    def watch_page(self, Py_ssize_t leaf):
        """Return a copy of what a leaf watches; None if it does not."""
        return self.watch_table.get(leaf)

    @property
    def model_pages(self):
        """Copies of the model of each leaf."""
        return self.model_table.first(self.leaf_count)

    @property
    def watch_pages(self):
        """Copies of what each leaf watches; None where it does not."""
        return self.watch_table.first(self.leaf_count)

    @property
    def observers(self):
        """The observers of each leaf: a list of them, one per feature, or None."""
        cdef list observers = self.watchers[: self.leaf_count]
        cdef Py_ssize_t leaf
        for leaf in range(self.leaf_count):
            if observers[leaf] is not None:
                observers[leaf] = (<Watchers>observers[leaf]).observers
        return observers

    @property
    def model_doubles(self):
        """Doubles in a model page."""
        return self.model_table.doubles

    @property
    def watch_doubles(self):
        """Doubles in a watch page."""
        return self.watch_table.doubles

    cdef int get_spares(self) except -1 nogil:
        """Let there be pages for a child."""
        if self.linear and self.spare_model == NULL:
            self.spare_model = self.model_table.fresh()
        if self.spare_watch == NULL:
            self.spare_watch = self.watch_table.fresh()
        if self.spare_watch == NULL or (self.linear and self.spare_model == NULL):
            with gil:
                raise MemoryError
        return 0

    cdef void drop_spares(self) noexcept nogil:
        """Give back what `get_spares` has got and no child has taken."""
        give_back(self.spare_model)
        give_back(self.spare_watch)
        self.spare_model = self.spare_watch = NULL
