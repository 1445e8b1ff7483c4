"""The tables of a tree, and who may read or change them."""

import numpy as np
from libc.stdlib cimport calloc, free, realloc

from sapwood.tree._records cimport (
    CATEGORIES, centres_at, covariance_at, model_size, scales_at, terms_of,
)
from sapwood.tree._track cimport TRACKS
from sapwood.tree._watch cimport most_kept

from sapwood.tree.tables import LEAF_RECORD, NODE_RECORD

TRACK_RATES = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9)
GRID_DOUBLES = sizeof(Grid) // sizeof(double)
SLOT_DOUBLES = sizeof(Slot) // sizeof(double)


def most_kept_rows(Py_ssize_t slots):
    """Return how many rows a leaf keeps before it lays the grid of a number."""
    return most_kept(slots)


cdef class TreeTables:
    """The tables of one tree.

    Parameters
    ----------
    slots : int
        Slots of a number in a leaf; 0 if observers watch the numbers.
    linear, averaging : bool
        Whether leaves predict by linear models, by the mean, or by both.
    tracking : bool
        Whether the tree tracks its error.
    """

    def __cinit__(self):
        self.node_table = np.zeros(0, NODE_RECORD)
        self.leaf_table = np.zeros(0, LEAF_RECORD)
        self.model_pages = []
        self.watch_pages = []
        self.observers = []
        self.addresses = []

    def __init__(self, Py_ssize_t slots, bint linear, bint averaging, bint tracking):
        if NODE_RECORD.itemsize != sizeof(NodeRecord) or LEAF_RECORD.itemsize != sizeof(LeafRecord):
            raise RuntimeError("the records of kernels and tables differ")
        self.slots = slots
        self.linear = linear
        self.averaging = averaging
        self.tracking = tracking
        tracks = np.zeros((sizeof(Tracker) // sizeof(double) // TRACKS, TRACKS))
        tracks[0] = TRACK_RATES
        self.set_tracks(tracks)
        self.set_features(np.zeros(0, dtype=np.bool_))

    def __dealloc__(self):
        free(self.models)
        free(self.watches)
        free(self.stores)
        free(self.is_category)
        free(self.slot_starts)
        free(self.scratch)
        free(self.found)

    # -- their contents -----------------------------------------------------------------------

    def set_tracks(self, tracks):
        """Take over the table of tracks."""
        cdef double[:, ::1] view = tracks
        self.track_table = tracks
        self.tracker = <Tracker*>&view[0, 0]

    def set_stream(
        self, double rows, double weight, double first, double low, double high, double usual
    ):
        """Restore what the tree knows of all rows."""
        self.rows, self.weight = rows, weight
        self.first, self.low, self.high, self.usual = first, low, high, usual

    def set_features(self, is_category, levels=None):
        """Say which features there are; pages have to be of that layout from now on."""
        cdef Py_ssize_t features = len(is_category), feature, start = 0
        cdef double[:, ::1] view
        free(self.is_category)
        free(self.slot_starts)
        free(self.scratch)
        free(self.found)
        self.found = <Slot**>calloc(features + 1, sizeof(Slot*))
        self.is_category = <int*>calloc(features + 1, sizeof(int))
        self.slot_starts = <Py_ssize_t*>calloc(features + 1, sizeof(Py_ssize_t))
        self.scratch = <double*>calloc(features + 2 * terms_of(features), sizeof(double))
        if NULL in (self.is_category, self.slot_starts, self.scratch, self.found):
            raise MemoryError
        for feature in range(features):
            self.is_category[feature] = is_category[feature]
            self.slot_starts[feature] = start
            start += 1 + (CATEGORIES if is_category[feature] else self.slots)
        self.has_categories = bool(np.any(is_category))
        self.slot_starts[features] = start
        self.features = features
        if levels is None:
            levels = np.zeros((features * CATEGORIES, 2))
            if self.level_table is not None:
                kept = min(len(levels), len(self.level_table))
                levels[:kept] = self.level_table[:kept]
        self.level_table = levels
        if features:
            view = levels
            self.levels = &view[0, 0]

    def sizes_for(self, is_category):
        """Return the doubles of a model page, a watch page and the levels for some features."""
        features = len(is_category)
        categories = int(np.count_nonzero(is_category))
        slots = features + categories * CATEGORIES + (features - categories) * self.slots
        return (
            model_size(features) if self.linear else 0,
            GRID_DOUBLES * features + SLOT_DOUBLES * slots,
            2 * CATEGORIES * features,
        )

    @property
    def buffer_bytes(self):
        """Bytes of what is in no array: pointers to pages, and what depends on the features."""
        per_leaf = 3 * sizeof(void*) + 4 * sizeof(void*)  # in tables, and in lists
        per_feature = sizeof(int) + sizeof(Py_ssize_t) + sizeof(double) + sizeof(Slot*)
        return (
            per_leaf * len(self.leaf_table)
            + per_feature * (self.features + 1)
            + 2 * sizeof(double) * terms_of(self.features)
        )

    @property
    def model_doubles(self):
        """Doubles in a model page."""
        return model_size(self.features) if self.linear else 0

    @property
    def watch_doubles(self):
        """Doubles in a watch page."""
        return GRID_DOUBLES * self.features + SLOT_DOUBLES * self.slot_starts[self.features]

    def page_parts(self):
        """Return where centres, scales and covariance start in a model page, and the terms."""
        return (
            centres_at(self.features),
            scales_at(self.features),
            covariance_at(self.features),
            terms_of(self.features),
        )

    def slot_start(self, Py_ssize_t feature):
        """Return the double of a watch page at which the slots of a feature start."""
        if not 0 <= feature <= self.features:
            raise IndexError(feature)
        return GRID_DOUBLES * self.features + SLOT_DOUBLES * self.slot_starts[feature]

    def set_tables(self, nodes, leaves):
        """Take over tables of nodes and leaves, with more rows or fewer than those in use."""
        cdef unsigned char[::1] node_bytes = nodes.view(np.uint8)
        cdef unsigned char[::1] leaf_bytes = leaves.view(np.uint8)
        cdef size_t room = len(leaves) * sizeof(void*)
        cdef void* models = realloc(self.models, room)
        if models != NULL:
            self.models = <double**>models
        cdef void* watches = realloc(self.watches, room)
        if watches != NULL:
            self.watches = <double**>watches
        cdef void* stores = realloc(self.stores, room)
        if stores != NULL:
            self.stores = <void***>stores
        if models == NULL or watches == NULL or stores == NULL:
            raise MemoryError
        self.node_table, self.leaf_table = nodes, leaves
        self.nodes = <NodeRecord*>&node_bytes[0]
        self.leaves = <LeafRecord*>&leaf_bytes[0]

    @property
    def has_room(self):
        """Whether the tables have rows for one more split."""
        return (
            self.node_count + 2 <= len(self.node_table)
            and self.leaf_count + 1 <= len(self.leaf_table)
        )

    def set_counts(self, Py_ssize_t nodes, Py_ssize_t leaves):
        """Say how many rows of the tables are in use."""
        if nodes > len(self.node_table) or leaves > len(self.leaf_table):
            raise IndexError("there are more nodes or leaves than rows of the tables")
        for pages in (self.model_pages, self.watch_pages, self.observers, self.addresses):
            del pages[leaves:]
            pages.extend([None] * (leaves - len(pages)))
        self.node_count, self.leaf_count = nodes, leaves

    def set_pages(self, Py_ssize_t leaf, model, watch, observers=None):
        """Give a leaf its pages, and what watches its numbers; None for what it does without."""
        cdef double[::1] model_view, watch_view
        cdef Py_ssize_t[::1] address_view
        self.models[leaf] = self.watches[leaf] = NULL
        self.stores[leaf] = NULL
        self.model_pages[leaf], self.watch_pages[leaf] = model, watch
        self.observers[leaf] = self.addresses[leaf] = None
        if model is not None and len(model):
            model_view = model
            self.models[leaf] = &model_view[0]
        if watch is not None:
            watch_view = watch
            if len(watch):
                self.watches[leaf] = &watch_view[0]
        if observers is not None:
            addresses = np.array([id(each._store) for each in observers], dtype=np.intp)
            address_view = addresses
            self.observers[leaf], self.addresses[leaf] = observers, addresses
            if len(addresses):
                self.stores[leaf] = <void**>&address_view[0]
        self.leaves[leaf].watching = watch is not None

    def leaf_state(self, Py_ssize_t leaf):
        """Return what the rules of growth ask: weight, depth, next review, and both M2."""
        cdef const LeafRecord* record = self.leaves + leaf
        return (
            record.weight,
            self.nodes[record.node].depth,
            record.review,
            record.target_m2,
            record.residual_m2,
        )

    def restart(self, Py_ssize_t leaf, double review):
        """Let a leaf count its rows from 0 again, as what it watches starts from nothing.

        It is to be reviewed after so many rows of the weight that rows have had so far.
        """
        cdef LeafRecord* record = self.leaves + leaf
        record.weight = record.target_mean = record.target_m2 = 0.0
        record.residual_mean = record.residual_m2 = 0.0
        record.born = self.weight
        record.due = record.review = review * (self.weight / self.rows if self.rows > 0.0 else 1.0)

    def set_due(self, Py_ssize_t leaf, double due, double review):
        """Set the weights at which a leaf is to be decided on and reviewed."""
        self.leaves[leaf].due, self.leaves[leaf].review = due, review

    # -- who may read or change them ----------------------------------------------------------

    cdef int check_width(self, Py_ssize_t width) except -1:
        if width != self.features:
            raise RuntimeError(
                f"rows of {width} features were read and there are {self.features}: another thread "
                "has learned new ones; give each thread a copy, or wait"
            )
        return 0

    def start_reading(self):
        """Let nothing be changed until `stop_reading`, or raise RuntimeError."""
        self.begin_reading()

    def stop_reading(self):
        """End what `start_reading` began."""
        self.readers -= 1

    def start_writing(self):
        """Let nobody else read or change anything until `stop_writing`, or raise RuntimeError."""
        self.begin_writing()

    def stop_writing(self):
        """End what `start_writing` began."""
        self.writing = False

    cdef int begin_writing(self) except -1:
        if self.writing or self.readers > 0:
            raise RuntimeError(
                "the tree is in use by another thread; give each thread a copy, or wait"
            )
        self.writing = True
        return 0

    cdef int begin_reading(self) except -1:
        if self.writing:
            raise RuntimeError(
                "the tree is learning in another thread; give each thread a copy, or wait"
            )
        self.readers += 1
        return 0

    # -- what was watched ---------------------------------------------------------------------

    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Slot*>(<Grid*>self.watches[leaf] + self.features) + self.slot_starts[feature]

    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Grid*>self.watches[leaf] + feature
