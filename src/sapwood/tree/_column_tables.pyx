"""The tables of a tree that depend on its features: kinds, slots, target encodings, statistics."""

import numpy as np

from sapwood.tree._facts cimport COARSEST, NO_GRID, SAMPLES, ColumnFacts
from sapwood.tree._target_encoding cimport HEAD
from sapwood.tree._records cimport CATEGORIES
from sapwood.tree._target_records cimport (
    TargetCost, costs_of, gap_doubles, permuted_doubles, slot_doubles, work_doubles,
)
from sapwood.tree._units cimport ColumnUnits
from sapwood.tree._watch cimport Grid, Slot

from sapwood.records import LARGEST
from sapwood.tree.layout import FACTS_RECORD, TARGET_COST, UNITS_RECORD

GRID_DOUBLES = sizeof(Grid) // sizeof(double)
SLOT_DOUBLES = sizeof(Slot) // sizeof(double)
ENCODING_HEAD = int(HEAD)
FARTHEST_ENCODING = 1e150


cdef void clear_watch(Columns columns, double* page) noexcept nogil:
    """Turn a page of zeros into that of a leaf that has seen nothing."""
    cdef Py_ssize_t feature
    if columns.view.has_categories:
        for feature in range(columns.features):
            if columns.view.is_category[feature]:
                (<Grid*>page)[feature] = Grid(0.0, 1.0, 1.0, 0.0)


cdef void set_may_split(Columns columns, const unsigned char* allowed) noexcept nogil:
    """Note of each feature whether leaves may split on it."""
    cdef Py_ssize_t feature
    columns.splittable = 0
    for feature in range(columns.features):
        columns.view.may_split[feature] = allowed[feature]
        columns.splittable += columns.view.may_split[feature]


def encoding_table_rows(places):
    """Return the rows of the table of target encodings, given the places of features."""
    cdef Py_ssize_t rows = CATEGORIES * len(places), count
    for count in places:
        rows += HEAD + count if count >= 0 else 0
    return rows


def are_separate(is_category, places, Py_ssize_t targets):
    """Return whether each of several targets has a whole model page: where categories enter it."""
    return targets > 1 and bool(np.any(is_category) or np.any(np.asarray(places) >= 0))


def encoding_rows(places):
    """Return how many split encodings there are: for each feature, that of a new category too."""
    cdef Py_ssize_t count
    return sum([1 + count for count in places if count >= 0])


cdef class Columns:
    """What depends on the features: their kinds, the places of slots, and room to work on a row.

    Parameters
    ----------
    is_category : array of bool
        Of each feature whether it is a low-cardinality category.
    slots : int
        Slots of a number.
    places : array of int, optional
        For how many codes a high-cardinality category has places; -1 for other features, as all are
        by default.
    levels : array of float, shape (`encoding_table_rows`, 2), optional
        The weight and the mean y: of 64 categories of each feature, and then, of each category of
        many, of all (three pairs: see _target_encoding.pxd) and of each place; the same for each
        further target. None is known by default.
    facts, samples : arrays, optional
        Of FACTS_RECORD and of doubles, shape (SAMPLE_ROWS, known): what is known of the first
        features. It is copied.
    units : array of UNITS_RECORD, optional
        The same of the units of y and of the first features.
    targets : int
        Columns of y.
    may_split : array of bool, optional
        Of each feature whether leaves may split on it, as on all by default.
    encodings : tuple of arrays, optional
        By which numbers splits read high-cardinality categories, and the weight that each target
        has in them: as `split_encoding_table` and `encoding_weight_table`, which are copied. By
        default nothing is known of them with several targets, and there are none with one.
    """

    def __init__(
        self, is_category, Py_ssize_t slots, places=None, levels=None, facts=None, samples=None,
        units=None, Py_ssize_t targets=1, may_split=None, encodings=None,
    ):
        cdef Py_ssize_t features = len(is_category), feature
        if places is None:
            places = np.full(features, -1)
        cdef bint separate = are_separate(is_category, places, targets)
        if levels is None:
            levels = np.zeros((targets * encoding_table_rows(places), 2))
        cdef double[:, ::1] level_view = levels
        if level_view.shape[0] != targets * encoding_table_rows(places) or len(places) != features:
            raise ValueError("the levels are not those of the features")
        cdef bint has_encoded = bool(np.any(np.asarray(places) >= 0))
        cdef Py_ssize_t work = work_doubles(features, targets, separate)
        cdef int[::1] kinds = np.zeros(2 * features + 1, np.intc)
        cdef Py_ssize_t[::1] starts = np.zeros(features + 1, np.intp)
        cdef double[::1] scratch = np.zeros(work + 2 * features)
        cdef Py_ssize_t[::1] found = np.zeros(2 * features + 1, np.intp)
        for feature in range(features):
            kinds[feature] = is_category[feature]
            starts[feature + 1] = (
                starts[feature] + 1 + (CATEGORIES if kinds[feature] else slots)
            )
        self.is_category = is_category
        self.features, self.targets = features, targets
        self.view.has_categories = bool(np.any(is_category))
        self.view.has_encoded = has_encoded
        self.view.separate, self.view.slot_size = separate, slot_doubles(targets)
        self.buffers = [kinds.base, starts.base, scratch.base, found.base]
        self.place_table = found.base[features + 1 :]
        self.place_table[:] = places
        self.view.places, self.view.room = &found[0] + features + 1, &scratch[0] + work
        self.view.is_category, self.view.slot_starts = &kinds[0], &starts[0]
        self.view.may_split = self.view.is_category + features
        self.allow_splits(np.ones(features, dtype=np.bool_) if may_split is None else may_split)
        self.view.scratch, self.view.found = &scratch[0], <Slot**>&found[0]
        self.encoding_table = levels
        self.view.encodings = &level_view[0, 0] if features else NULL
        self.view.many_encodings = self.view.encodings + 2 * CATEGORIES * features
        self.view.encoding_doubles = 2 * encoding_table_rows(places)
        self.view.split_encoded = has_encoded and (targets > 1 or encodings is not None)
        self.set_encodings(encodings)
        self.set_facts(facts, samples)
        self.set_costs(None)
        self.set_units(units)

    def allow_splits(self, may_split):
        """Set for each feature whether leaves may split on it."""
        cdef const unsigned char[::1] allowed = np.ascontiguousarray(may_split).view(np.uint8)
        if allowed.shape[0] != self.features:
            raise ValueError("there is not one entry of no_splits for each feature")
        if self.features:
            set_may_split(self, &allowed[0])

    def set_encodings(self, encodings):
        """Copy split encodings; none are known if it is None."""
        rows = encoding_rows(self.place_table) if self.view.split_encoded else 0
        weights = self.features if self.view.split_encoded else 0
        cdef double[::1] found = np.full(rows + 1, np.nan)
        cdef double[::1] shares = np.zeros((weights + 1) * self.targets)
        self.buffers += [found.base, shares.base]
        self.split_encoding_table = found.base[:rows]
        self.encoding_weight_table = shares.base[: weights * self.targets].reshape(
            weights, self.targets
        )
        if self.view.split_encoded and encodings is not None:
            self.split_encoding_table[:], self.encoding_weight_table[:] = encodings
        self.view.split_encodings, self.view.encoding_weights = &found[0], &shares[0]

    def set_facts(self, facts, samples):
        """Copy what is known of the first features; of others nothing is."""
        cdef Py_ssize_t features = self.features, known = 0 if facts is None else len(facts)
        self.fact_table = np.zeros(features + 1, FACTS_RECORD)
        self.fact_table["decimals"] = COARSEST
        self.fact_table["low"], self.fact_table["high"] = LARGEST, -LARGEST
        self.sample_table = np.full(SAMPLES * features + 1, np.nan)
        if known:
            self.fact_table[:known] = facts
            self.known_samples[:, :known] = samples
        numbers = ~self.is_category & (self.place_table[:features] < 0)
        self.fact_table["decimals"][:features][~numbers] = NO_GRID
        self.fact_table["low"][:features][~numbers] = -LARGEST
        self.fact_table["high"][:features][~numbers] = LARGEST
        cdef unsigned char[::1] fact_bytes = self.fact_table.view(np.uint8)
        cdef double[::1] sample_view = self.sample_table
        cdef double[::1] permuted = np.zeros(
            1 + permuted_doubles(features, self.targets, self.view.separate)
        )
        self.view.facts, self.view.samples = <ColumnFacts*>&fact_bytes[0], &sample_view[0]
        self.view.permuted = &permuted[0]
        self.buffers.append(permuted.base)

    def set_costs(self, costs):
        """Copy what it costs each of several targets to get the first features wrong."""
        self.cost_table = np.zeros(1 + costs_of(self.features, self.targets), TARGET_COST)
        if costs is not None:
            self.cost_table[: len(costs)] = costs
        cdef unsigned char[::1] cost_bytes = self.cost_table.view(np.uint8)
        self.view.costs = <TargetCost*>&cost_bytes[0]

    def set_units(self, units):
        """Copy what is known of the units of y and of the first features."""
        self.unit_table = np.zeros(self.features + 1, UNITS_RECORD)
        if units is not None:
            self.unit_table[: len(units)] = units
        cdef unsigned char[::1] unit_bytes = self.unit_table.view(np.uint8)
        self.view.units = <ColumnUnits*>&unit_bytes[0]

    @property
    def has_encoded(self):
        """Whether there are high-cardinality features."""
        return self.view.has_encoded

    @property
    def split_encoded(self):
        """Whether splits read split encodings."""
        return self.view.split_encoded

    @property
    def known_facts(self):
        """What is known of each feature."""
        return self.fact_table[: self.features]

    @property
    def known_costs(self):
        """What it costs to get each feature wrong, of all targets feature by feature."""
        return self.cost_table[: costs_of(self.features, self.targets)]

    @property
    def known_samples(self):
        """Rows of the past."""
        return self.sample_table[: SAMPLES * self.features].reshape(SAMPLES, self.features)

    @property
    def watch_doubles(self):
        """Doubles in a page of what is watched."""
        return self.gap_start(self.features)

    def slot_start(self, Py_ssize_t feature):
        """Return the double of a watch page at which the slots of a feature start."""
        if not 0 <= feature <= self.features:
            raise IndexError(feature)
        return GRID_DOUBLES * self.features + self.view.slot_size * self.view.slot_starts[feature]

    def gap_start(self, Py_ssize_t feature):
        """Return the double at which the weights that are missing in its slots start."""
        if not 0 <= feature <= self.features:
            raise IndexError(feature)
        return self.slot_start(self.features) + (
            gap_doubles(self.targets) * self.view.slot_starts[feature]
        )
