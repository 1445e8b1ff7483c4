"""The tables of a tree, and the walk of a row through them: predict it, learn it.

Nothing is decided here. A walk ends where a leaf's weight has reached its `due`; Python then
decides, changes the tables, and lets the walk go on.
"""

cimport cython
import numpy as np
from libc.math cimport INFINITY, NAN, fabs, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from sapwood import door
from sapwood.moments cimport PIVOT
from sapwood.observers._rows cimport CELLS
from sapwood.observers._store cimport Store
from sapwood.tree._entry cimport RowReader
from sapwood.tree._model cimport (
    HEAVIEST, LONG_MEMORY, SAMPLE, YOUNG, Z_CREDIBLE, Z_REACH, direction, move_coefficients,
    multiply_block, shrink_covariance, standardise,
)
from sapwood.tree._tables cimport (
    CATEGORIES, EXPERTS, RATES, LeafRecord, NodeRecord, centres_at,
    covariance_at, model_size, scales_at, terms_of,
)
from sapwood.tree._track cimport follow, start_following, tracked
from sapwood.tree._walk cimport leaf_of, leaves_of, mixed
from sapwood.tree._watch cimport KeptRow, keep_row, most_kept, slot_add, slot_of

from sapwood.tree.tables import LEAF_RECORD, NODE_RECORD

cdef enum:
    AHEAD = 8  # rows that are walked down the tree together

# How much of an expert's squared error a leaf still remembers a row later.
cdef double FADE = 0.99
# How far beyond the range of y that was seen a prediction may go, as a share of it.
cdef double MARGIN = 0.1
# How large y and the sum of all weights may be: then squares of sums of both stay doubles.
cdef double LARGEST_Y = 1e100
cdef double LARGEST_WEIGHT = 1e50
# A leaf starts anew if its errors lately were so many times smaller than over all of its rows.
cdef double OUTDATED = 1e6
cdef double OUTDATED_ROWS = 200.0
# From so many rows on, a y is held within so many usual squared errors of its prediction, or
# within this share of the range of y.
cdef double HELD_ROWS = 100.0
cdef double HELD_ERROR = 1000.0
cdef double HELD_RANGE = 0.25
# If, of the first few y, one is so much nearer to 0 than the first, it becomes the origin.
cdef double EARLY = 8.0
cdef double NEARER = 1e-6
# The rates at which linear models forget: shares of an error by which a row moves them at least.
cdef double[RATES] LEAST = [0.0, 0.02, 0.1, 0.3]
LEAST_SHARES = tuple(LEAST)
RANGE_MARGIN, TERM_REACH, TERM_CREDIBLE = MARGIN, float(Z_REACH), float(Z_CREDIBLE)
TRACK_RATES = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9)
GRID_DOUBLES = sizeof(Grid) // sizeof(double)
SLOT_DOUBLES = sizeof(Slot) // sizeof(double)


cdef inline bint admissible(double y, double w, double weight) noexcept nogil:
    """Whether a row keeps all that is derived from it within the doubles; false for NaN."""
    return fabs(y) <= LARGEST_Y and 0.0 < w and weight <= LARGEST_WEIGHT


cdef inline void shift_first_target(Store store, double shift) noexcept nogil:
    """Add to the first target of all rows that an observer has seen."""
    cdef Py_ssize_t row
    for row in range(store.count):
        store.table[row, CELLS + PIVOT] += shift


def most_kept_rows(Py_ssize_t slots):
    """Return how many rows a leaf keeps before it lays the grid of a number."""
    return most_kept(slots)


def refuse_row(double y, double w, row=None):
    """Raise the error for a row that may not be learned."""
    door.refuse_large_row(y, w, LARGEST_Y, row)


@cython.final
cdef class TreeKernel:
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

    # -- the tables ---------------------------------------------------------------------------

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
        self.is_category = <int*>calloc(features + 1, sizeof(int))
        self.slot_starts = <Py_ssize_t*>calloc(features + 1, sizeof(Py_ssize_t))
        self.scratch = <double*>calloc(features + 2 * terms_of(features), sizeof(double))
        if self.is_category == NULL or self.slot_starts == NULL or self.scratch == NULL:
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
        per_feature = sizeof(int) + sizeof(Py_ssize_t) + sizeof(double)
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

    def is_outdated(self, Py_ssize_t leaf):
        """Whether the errors that a leaf has now are nothing beside those that it once had."""
        cdef const LeafRecord* record = self.leaves + leaf
        cdef Py_ssize_t expert
        cdef double least = record.errors[0] if self.averaging else INFINITY
        if self.linear:
            for expert in range(1, EXPERTS):
                least = min(least, record.errors[expert])
        # A faded sum counts for about 1 / (1 - FADE) rows.
        return (
            record.rows >= OUTDATED_ROWS
            and (1.0 - FADE) * least * record.rows * OUTDATED < record.residual_m2
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

    # -- the walk -----------------------------------------------------------------------------

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

    cdef void look(self, const double* row, double* scratch, Outlook* outlook) noexcept nogil:
        """Predict a row whose leaf is known; the terms are left in scratch for `take`."""
        cdef const LeafRecord* record = self.leaves + outlook.leaf
        cdef const double* page = self.models[outlook.leaf]
        cdef const double* values = row
        cdef double* z = scratch + self.features
        cdef double margin = MARGIN * (self.high - self.low)
        cdef double lowest = self.low - margin - record.origin
        cdef double highest = self.high + margin - record.origin
        cdef double value
        cdef Py_ssize_t expert
        outlook.experts[0] = record.mean
        outlook.tree = record.origin + record.mean
        if self.linear:
            if self.has_categories:
                self.set_levels(row, scratch)
                values = scratch
            standardise(
                page + centres_at(self.features),
                page + scales_at(self.features),
                values,
                self.features,
                terms_of(self.features),
                z,
            )
            multiply_block(page, RATES, z, terms_of(self.features), outlook.experts + 1)
            for expert in range(1, EXPERTS):
                value = outlook.experts[expert]
                value = value if value > lowest else lowest
                outlook.experts[expert] = value if value < highest else highest
            outlook.tree = record.origin + mixed(
                outlook.experts, record.errors, self.averaging
            )
        outlook.prediction = outlook.tree
        if self.tracking:
            outlook.prediction = tracked(self.tracker, outlook.tree, outlook.tracks)

    cdef void set_levels(self, const double* row, double* values) noexcept nogil:
        """Copy a row, with the mean y of a category in place of its code."""
        cdef Py_ssize_t feature, code
        for feature in range(self.features):
            values[feature] = row[feature]
            if self.is_category[feature] and row[feature] == row[feature]:
                code = CATEGORIES * feature + <Py_ssize_t>row[feature]
                # A category of which no y was learned is treated as missing.
                values[feature] = self.levels[2 * code + 1] if self.levels[2 * code] > 0.0 else NAN

    cdef void learn_row(
        self, const double* row, double y, double w, Outlook* outlook
    ) noexcept nogil:
        """Predict and learn a row whose leaf is known."""
        self.look(row, self.scratch, outlook)
        if self.rows > 0.0:
            y = self.held_near(y, outlook.prediction)
            if self.tracking:
                follow(self.tracker, outlook.tree, outlook.tracks, y, w)
        else:
            self.first = self.low = self.high = y
            self.leaves[outlook.leaf].origin = y
            # The first review is due after so many rows, whatever they weigh.
            self.leaves[outlook.leaf].due *= w
            self.leaves[outlook.leaf].review *= w
            start_following(self.tracker, y)
        self.take(row, y, w, outlook)

    cdef double held_near(self, double y, double prediction) noexcept nogil:
        """A y as it is learned: not farther from its prediction than is credible.

        That is so many times the usual error, and at least a share of the range of y. The usual
        error at most doubles with a row, so that a real jump is followed within a few.
        """
        cdef double error = y - prediction, square = error * error
        cdef double least = HELD_RANGE * (self.high - self.low)
        cdef double limit = HELD_ERROR * self.usual
        limit = limit if limit > least * least else least * least
        if square > limit and limit > 0.0 and self.rows >= HELD_ROWS:
            square = limit
            y = prediction + (sqrt(limit) if error > 0.0 else -sqrt(limit))
        self.usual += (square - self.usual) / HELD_ERROR
        return y

    cdef void take(
        self, const double* row, double y, double w, const Outlook* outlook
    ) noexcept nogil:
        """Learn a row at which `look` has looked just before."""
        cdef LeafRecord* record = self.leaves + outlook.leaf
        cdef double target = y - record.origin, residual, delta, share
        self.rows += 1.0
        self.weight += w
        self.low = y if y < self.low else self.low
        self.high = y if y > self.high else self.high
        residual = delta = target - record.mean
        record.errors[0] = FADE * record.errors[0] + w * delta * delta
        record.mean_weight += w
        record.mean += delta * (w / record.mean_weight)
        if self.linear:
            residual = self.learn_linear(outlook.leaf, outlook, target, w)
        record.rows += 1.0
        record.weight += w
        share = w / record.weight
        delta = target - record.target_mean
        record.target_mean += delta * share
        record.target_m2 += w * delta * delta * (1.0 - share)
        delta = residual - record.residual_mean
        record.residual_mean += delta * share
        record.residual_m2 += w * delta * delta * (1.0 - share)
        if record.watching:
            self.watch_row(outlook.leaf, row, target, residual, w)
        if self.has_categories:
            self.learn_levels(row, y - self.first, w)
        if self.rows <= EARLY and fabs(y) < NEARER * fabs(record.origin):
            self.move_origin(outlook.leaf, y)

    cdef void move_origin(self, Py_ssize_t leaf, double origin) noexcept nogil:
        """Measure the y of the first leaf from another one, as the first was very far away."""
        cdef LeafRecord* record = self.leaves + leaf
        cdef double shift = record.origin - origin
        cdef Grid* grids = <Grid*>self.watches[leaf]
        cdef Py_ssize_t feature, slot, count, rate
        cdef Slot* slots
        cdef KeptRow* kept
        record.origin = origin
        record.mean += shift
        record.target_mean += shift
        if self.linear:
            for rate in range(RATES):
                self.models[leaf][rate] += shift
        if not record.watching:
            return
        for feature in range(self.features):
            slots = self.slots_of(leaf, feature)
            kept = <KeptRow*>slots
            count = slots_between(self.slot_starts, feature)
            slots[count].target += shift * slots[count].weight
            if self.is_category[feature]:
                for slot in range(count):
                    slots[slot].target += shift * slots[slot].weight
            elif self.slots:
                for slot in range(<Py_ssize_t>grids[feature].kept):
                    kept[slot].sums.target += shift * kept[slot].sums.weight
            else:
                shift_first_target(<Store>self.stores[leaf][feature], shift)

    cdef double learn_linear(
        self, Py_ssize_t leaf, const Outlook* outlook, double target, double w
    ) noexcept nogil:
        """Move the linear models of a leaf; the error of the one that was best before."""
        cdef LeafRecord* record = self.leaves + leaf
        cdef double* page = self.models[leaf]
        cdef double* covariance = page + covariance_at(self.features)
        cdef Py_ssize_t terms = terms_of(self.features), rate
        cdef double* z = self.scratch + self.features
        cdef double* v = z + terms
        cdef double errors[RATES]
        cdef double least = record.errors[1], residual, unusual
        residual = target - outlook.experts[1]
        for rate in range(RATES):
            errors[rate] = target - outlook.experts[1 + rate]
            residual = errors[rate] if record.errors[1 + rate] < least else residual
            least = record.errors[1 + rate] if record.errors[1 + rate] < least else least
        for rate in range(RATES):
            record.errors[1 + rate] = (
                FADE * record.errors[1 + rate] + w * errors[rate] * errors[rate]
            )
        w = w if w < <double>HEAVIEST else <double>HEAVIEST
        unusual = direction(covariance, z, terms, v)
        if unusual > 0.0:
            move_coefficients(page, v, terms, unusual, errors, LEAST, w)
            if record.rows < YOUNG:
                shrink_covariance(covariance, z, v, terms, unusual, w)
            elif record.rows < LONG_MEMORY and <int64_t>record.rows % SAMPLE == 0:
                shrink_covariance(covariance, z, v, terms, unusual, SAMPLE * w)
        return residual

    cdef void watch_row(
        self, Py_ssize_t leaf, const double* row, double target, double residual, double w
    ) noexcept nogil:
        """Let the slots, or the observers, of a leaf see a row."""
        cdef Grid* grids = <Grid*>self.watches[leaf]
        cdef Slot* slots = <Slot*>(grids + self.features)
        cdef double weighted_target = w * target, weighted_residual = w * residual
        cdef Py_ssize_t feature, count
        cdef double x
        for feature in range(self.features):
            count = self.slots if not self.has_categories else slots_between(self.slot_starts, feature)
            x = row[feature]
            if x == x and grids[feature].inverse > 0.0:
                slot_add(
                    slots + slot_of(grids + feature, count, x),
                    weighted_target,
                    weighted_residual,
                    w,
                )
            elif x != x:
                slot_add(slots + count, weighted_target, weighted_residual, w)
            elif count:
                keep_row(
                    grids + feature, slots, count, x, weighted_target, weighted_residual, w
                )
            else:
                self.observe(leaf, feature, x, target, residual, w)
            slots += count + 1

    cdef void observe(
        self,
        Py_ssize_t leaf,
        Py_ssize_t feature,
        double x,
        double target,
        double residual,
        double w,
    ) noexcept nogil:
        """Let an observer see a value."""
        cdef double[2] both
        both[0], both[1] = target, residual
        while not (<Store>self.stores[leaf][feature]).take_one(x, both, w):
            with gil:
                (<Store>self.stores[leaf][feature]).grow(1)

    cdef void learn_levels(self, const double* row, double y, double w) noexcept nogil:
        """Keep the mean y of each category, by which it enters the linear models."""
        cdef Py_ssize_t feature
        cdef double* level
        for feature in range(self.features):
            if self.is_category[feature] and row[feature] == row[feature]:
                level = self.levels + 2 * (CATEGORIES * feature + <Py_ssize_t>row[feature])
                level[0] += w
                level[1] += (y - level[1]) * (w / level[0])

    def learn(
        self,
        const double[:, ::1] X,
        const double[::1] y,
        const double[:] w,
        decide,
        double[::1] predictions=None,
    ):
        """Learn rows.

        Parameters
        ----------
        X, y, w : arrays
            Rows that passed the door.
        decide : callable
            Called with each leaf whose weight has reached its `due`; may change all tables.
        predictions : array, optional
            Gets what was predicted for each row before it was learned.
        """
        cdef Py_ssize_t row, rows = y.shape[0], ahead = 0, known = 0
        cdef bint predicting = predictions is not None
        cdef Py_ssize_t leaves[AHEAD]
        cdef Outlook outlook
        if X.shape[0] != rows or w.shape[0] != rows:
            raise ValueError("the arrays do not fit together")
        self.check_width(X.shape[1])
        if predicting and predictions.shape[0] != rows:
            raise ValueError("the arrays do not fit together")
        self.begin_writing()
        try:
            with nogil:
                for row in range(rows):
                    if row >= known:
                        ahead = row
                        known = min(row + AHEAD, rows)
                        leaves_of(
                            self.nodes, row_at(X, row), self.features, known - row, leaves
                        )
                    outlook.leaf = leaves[row - ahead]
                    self.learn_row(row_at(X, row), y[row], w[row], &outlook)
                    if predicting:
                        predictions[row] = outlook.prediction if self.rows > 1.0 else 0.0
                    if self.leaves[outlook.leaf].weight >= self.leaves[outlook.leaf].due:
                        known = row + 1  # the walks ahead may no longer hold
                        with gil:
                            decide(outlook.leaf)
        finally:
            self.writing = False

    def check(self, const double[::1] y, const double[:] w):
        """Return the first row that may not be learned, or -1; nothing is changed."""
        cdef Py_ssize_t row, bad = -1
        cdef double weight = self.weight
        with nogil:
            for row in range(y.shape[0]):
                weight += w[row]
                if not admissible(y[row], w[row], weight):
                    bad = row
                    break
        return bad

    def learn_one(self, RowReader reader not None, x, double y, double w, decide):
        """Learn a row, if the reader can read it as it is; `decide` is as for `learn`.

        Returns
        -------
        bool
            Whether it was learned; if not, it brings something new, or something bad.
        """
        cdef Outlook outlook
        if not admissible(y, w, self.weight + w):
            refuse_row(y, w)
        self.begin_writing()
        try:
            # Nothing here runs code of others, so that no other row can come in between.
            if not reader.fill(x, True) or reader.width != self.features:
                return False
            outlook.leaf = leaf_of(self.nodes, reader.values)
            self.learn_row(reader.values, y, w, &outlook)
            if self.leaves[outlook.leaf].weight >= self.leaves[outlook.leaf].due:
                decide(outlook.leaf)
        finally:
            self.writing = False
        return True

    def predict_one(self, RowReader reader not None, x):
        """Predict a row, or return None if the reader cannot read it as it is."""
        cdef Outlook outlook
        self.begin_reading()
        try:
            if not reader.fill(x, False) or reader.width != self.features:
                return None
            if self.rows == 0.0:
                return 0.0
            outlook.leaf = leaf_of(self.nodes, reader.values)
            self.look(reader.values, self.scratch, &outlook)
        finally:
            self.readers -= 1
        return outlook.prediction

    def outlook(self, const double[::1] row):
        """Return how the prediction for a row comes about.

        Returns
        -------
        tuple
            The leaf, what its experts predict (from its origin), the standardised terms, what the
            tree predicts, and what it predicts when tracked.
        """
        cdef Outlook outlook
        cdef double[::1] scratch = np.zeros(self.features + terms_of(self.features))
        self.check_width(row.shape[0])
        self.begin_reading()
        outlook.leaf = leaf_of(self.nodes, &row[0] if self.features else NULL)
        self.look(&row[0] if self.features else NULL, &scratch[0], &outlook)
        self.readers -= 1
        return (
            outlook.leaf,
            [outlook.experts[expert] for expert in range(EXPERTS if self.linear else 1)],
            scratch.base[self.features : 2 * self.features + 1].tolist() if self.linear else [],
            outlook.tree,
            outlook.prediction,
        )

    def predict(self, const double[:, ::1] X, double[::1] predictions):
        """Predict all rows; any number of threads may do so at once."""
        cdef Py_ssize_t row
        cdef Outlook outlook
        cdef double* scratch
        if X.shape[0] != predictions.shape[0]:
            raise ValueError("the arrays do not fit together")
        self.check_width(X.shape[1])
        if self.rows == 0.0:
            predictions[:] = 0.0
            return
        self.begin_reading()
        scratch = <double*>malloc((self.features + terms_of(self.features)) * sizeof(double))
        if scratch == NULL:
            self.readers -= 1
            raise MemoryError
        with nogil:
            for row in range(X.shape[0]):
                outlook.leaf = leaf_of(self.nodes, row_at(X, row))
                self.look(row_at(X, row), scratch, &outlook)
                predictions[row] = outlook.prediction
        self.readers -= 1
        free(scratch)

    # -- what was watched ---------------------------------------------------------------------

    cdef Slot* slots_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Slot*>(<Grid*>self.watches[leaf] + self.features) + self.slot_starts[feature]

    cdef Grid* grid_of(self, Py_ssize_t leaf, Py_ssize_t feature) noexcept nogil:
        return <Grid*>self.watches[leaf] + feature


cdef inline const double* row_at(const double[:, ::1] X, Py_ssize_t row) noexcept nogil:
    return &X[row, 0] if X.shape[1] else NULL
