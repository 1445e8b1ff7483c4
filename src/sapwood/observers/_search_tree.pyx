"""The elements of E-BST and TE-BST: one node for each different x, in an AVL tree.

The paper's node holds the rows that passed it and went left or stayed. Ours holds only those that
stayed. The candidates and their merits are the same, prefixes and suffixes need no subtraction,
a row changes one node, and the tree may be balanced: an ascending stream costs no more than others.
"""

cimport cython
import numpy as np
from libc.math cimport fabs, rint

from sapwood.observers._rows cimport row_add, row_merge
from sapwood.observers._store import resized


@cython.final
cdef class SearchTreeStore(Store):
    """Nodes of an AVL tree (Knuth 6.2.3); nothing in it is recursive."""

    def __init__(self, Py_ssize_t targets, double scale=0.0):
        Store.__init__(self, targets)
        self.scale = scale
        self.links = np.empty((0, 2), dtype=np.int32)
        self.root = -1

    cdef double rounded(self, double x) noexcept nogil:
        """x to so many decimals, half to even; +0.0, never -0.0."""
        if self.scale == 0.0 or fabs(x) * self.scale >= 4503599627370496.0:
            return x + 0.0
        return rint(x * self.scale) / self.scale + 0.0

    cdef bint take_one(self, double x, const double* y, double w) noexcept nogil:
        cdef Py_ssize_t node = self.find_or_add(self.rounded(x))
        if node < 0:
            return False
        row_add(&self.table[node, 0], self.targets, x, y, w)
        return True

    cdef Py_ssize_t find_or_add(self, double key) noexcept nogil:
        """The node of a key, made if need be, or -1 if there is no room for it."""
        cdef Py_ssize_t path[DEEPEST]
        cdef int sides[DEEPEST]
        cdef int depth = 0, side
        cdef Py_ssize_t node = self.root, new, top
        while node >= 0:
            if self.keys[node] == key:
                return node
            side = key > self.keys[node]
            path[depth] = node
            sides[depth] = side
            depth += 1
            node = self.child(node, side)
        new = self.add_node(key)
        if new < 0:
            return -1
        if depth == 0:
            self.root = new
            return new
        self.set_child(path[depth - 1], sides[depth - 1], new)
        while depth > 0:
            depth -= 1
            node = path[depth]
            side = sides[depth]
            if self.heavy(node) == NEITHER:
                self.set_heavy(node, side)
                continue
            if self.heavy(node) != side:
                self.set_heavy(node, NEITHER)
                break
            top = self.rotate(node, side)
            if depth == 0:
                self.root = top
            else:
                self.set_child(path[depth - 1], sides[depth - 1], top)
            break
        return new

    cdef Py_ssize_t add_node(self, double key) noexcept nogil:
        cdef Py_ssize_t node = self.count
        if node == self.keys.shape[0]:
            return -1
        self.keys[node] = key
        self.links[node, 0] = self.links[node, 1] = -2
        self.count += 1
        return node

    cdef Py_ssize_t child(self, Py_ssize_t node, int side) noexcept nogil:
        return self.links[node, side] >> 1

    cdef void set_child(self, Py_ssize_t node, int side, Py_ssize_t child) noexcept nogil:
        self.links[node, side] = 2 * child + (self.links[node, side] & 1)

    cdef int heavy(self, Py_ssize_t node) noexcept nogil:
        """The higher side of a node, or NEITHER."""
        if self.links[node, 0] & 1:
            return 0
        return 1 if self.links[node, 1] & 1 else NEITHER

    cdef void set_heavy(self, Py_ssize_t node, int side) noexcept nogil:
        self.links[node, 0] &= -2
        self.links[node, 1] &= -2
        if side != NEITHER:
            self.links[node, side] |= 1

    cdef Py_ssize_t rotate(self, Py_ssize_t node, int side) noexcept nogil:
        """Balance a node whose side is two too high; the node that takes its place."""
        cdef int other = 1 - side, heavy
        cdef Py_ssize_t child = self.child(node, side), inner
        if self.heavy(child) == side:
            self.set_child(node, side, self.child(child, other))
            self.set_child(child, other, node)
            self.set_heavy(node, NEITHER)
            self.set_heavy(child, NEITHER)
            return child
        inner = self.child(child, other)
        heavy = self.heavy(inner)
        self.set_child(child, other, self.child(inner, side))
        self.set_child(inner, side, child)
        self.set_child(node, side, self.child(inner, other))
        self.set_child(inner, other, node)
        self.set_heavy(node, other if heavy == side else NEITHER)
        self.set_heavy(child, side if heavy == other else NEITHER)
        self.set_heavy(inner, NEITHER)
        return inner

    cdef int resize(self, Py_ssize_t size) except -1:
        cdef int32_t[:, ::1] links = resized(self.links.base, size)
        Store.resize(self, size)
        self.links = links
        return 0

    cdef bint knows(self, double x) noexcept nogil:
        cdef double key = self.rounded(x)
        cdef Py_ssize_t node = self.root
        while node >= 0 and self.keys[node] != key:
            node = self.child(node, key > self.keys[node])
        return node >= 0

    cdef Store duplicate(self):
        cdef SearchTreeStore duplicate = SearchTreeStore(self.targets, self.scale)
        duplicate.keys, duplicate.table = self.keys.base.copy(), self.table.base.copy()
        duplicate.links, duplicate.root = self.links.base.copy(), self.root
        duplicate.count = self.count
        return duplicate

    cdef void become(self, Store other) noexcept:
        Store.become(self, other)
        self.links = (<SearchTreeStore>other).links
        self.root = (<SearchTreeStore>other).root

    def order(self):
        """Return the rows in use, in ascending order of their keys: an in-order walk."""
        cdef Py_ssize_t[::1] order = np.empty(self.count, dtype=np.intp)
        cdef Py_ssize_t path[DEEPEST]
        cdef Py_ssize_t node = self.root, seen = 0
        cdef int depth = 0
        while depth > 0 or node >= 0:
            while node >= 0:
                path[depth] = node
                depth += 1
                node = self.child(node, 0)
            depth -= 1
            node = path[depth]
            order[seen] = node
            seen += 1
            node = self.child(node, 1)
        return order.base

    def absorb(self, const double[::1] keys, const double[:, ::1] table):
        """Merge rows into the nodes of their keys; those before memory is short, if it is."""
        cdef Py_ssize_t other, node
        for other in range(keys.shape[0]):
            node = self.find_or_add(keys[other])
            if node < 0:
                self.grow(keys.shape[0] - other)
                node = self.find_or_add(keys[other])
            row_merge(&self.table[node, 0], &table[other, 0], self.targets)
        self.trim(0)

    def arrays(self):
        """Return the arrays that the store holds, as they are."""
        return [*Store.arrays(self), self.links.base]
