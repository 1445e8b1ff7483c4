"""The tables of a tree that depend on its features."""

from sapwood.tree._facts cimport ColumnFacts
from sapwood.tree._target_records cimport TargetCost
from sapwood.tree._units cimport ColumnUnits
from sapwood.tree._watch cimport Slot


cdef struct ColumnView:
    # The memory of `Columns` that kernels use. A tree has a copy of the view.
    bint has_categories
    bint has_encoded           # whether there are high-cardinality features
    bint split_encoded         # whether splits read split encodings, see _split_encoding.pyx
    bint separate              # whether each target has a whole model page of its own
    int* is_category           # whether a feature is a low-cardinality category
    int* may_split             # whether leaves may split on a feature
    Py_ssize_t* places         # of a high-cardinality feature: its codes with an encoding; else -1
    Py_ssize_t slot_size       # doubles of a slot
    Py_ssize_t* slot_starts    # of each feature, in slots; one past the end
    double* encodings          # target encodings: weight and mean y of each category
    double* many_encodings     # of high-cardinality features, which follow those of all features
    Py_ssize_t encoding_doubles   # of each target
    double* split_encodings    # of a new category and then of each place
    double* encoding_weights   # of each target in them, and then a buffer of the same size
    ColumnFacts* facts         # see _facts.pxd
    TargetCost* costs          # of each feature and each of several targets
    double* samples            # rows of the past
    ColumnUnits* units         # of y and of each feature; see _units.pxd
    double* scratch            # buffers: for values, terms and direction of a row that is learned,
    double* room               # for an encoded row,
    double* permuted           # for a permuted row: values, encoded values, terms,
    Slot** found               # and for the slot of each feature of the row


cdef class Columns:
    cdef readonly object is_category   # of each feature: whether it is a low-cardinality category
    cdef readonly object place_table   # of each feature: its codes with an encoding, or -1
    cdef readonly object encoding_table   # for each category of each feature: weight and mean of y
    cdef readonly object split_encoding_table
    cdef readonly object encoding_weight_table  # 0 while there are no weights, or they are fixed
    cdef readonly object fact_table    # see _facts.pxd
    cdef readonly object sample_table  # rows of the past
    cdef readonly object unit_table    # of y and of each feature; see _units.pxd
    cdef readonly object cost_table    # of each feature and each of several targets
    cdef readonly Py_ssize_t features
    cdef readonly Py_ssize_t targets
    cdef Py_ssize_t splittable         # features that leaves may split on
    cdef list buffers                  # further arrays of the view
    cdef ColumnView view


cdef void set_may_split(Columns columns, const unsigned char* allowed) noexcept nogil
cdef void clear_watch(Columns columns, double* page) noexcept nogil
