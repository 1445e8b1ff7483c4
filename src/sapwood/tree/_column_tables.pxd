"""The tables of a tree that depend on its features."""

from sapwood.tree._facts cimport ColumnFacts
from sapwood.tree._target_records cimport TargetCost
from sapwood.tree._units cimport ColumnUnits
from sapwood.tree._watch cimport Slot


cdef class Columns:
    cdef readonly object is_category   # of each feature: whether it is a low-cardinality category
    cdef readonly object place_table   # of each feature: its codes with an encoding, or -1
    cdef readonly object encoding_table   # for each category of each feature: weight and mean of y
    cdef readonly Py_ssize_t features
    cdef readonly Py_ssize_t targets
    cdef bint has_categories
    cdef readonly bint has_encoded
    # Whether splits read high-cardinality categories by other numbers than the levels of a target,
    # see _split_encoding.pyx; these, of a new category and then of each place; and for each feature
    # the weight that each target has in them: 0 while there are none, or they are fixed.
    cdef readonly bint split_encoded
    cdef readonly object split_encoding_table
    cdef readonly object encoding_weight_table
    cdef double* split_encodings       # of `split_encoding_table`
    cdef double* encoding_weights      # of `encoding_weight_table`, and then room for as many more
    cdef Py_ssize_t encoding_doubles      # of `encoding_table`, for each target
    cdef bint separate                 # whether each target has a whole model page of its own
    cdef Py_ssize_t slot_size          # doubles of a slot
    cdef list buffers                  # the arrays to which these point:
    cdef int* kinds                    # whether a feature is a low-cardinality category
    cdef int* may_split                # whether leaves may split on a feature
    cdef Py_ssize_t splittable         # how many there are of these
    cdef Py_ssize_t* places            # of `place_table`
    cdef double* room                  # for an encoded row; within `scratch`
    cdef double* many_encodings           # of `encoding_table`: those after the few of all features
    cdef Py_ssize_t* slot_starts       # where a feature's slots start, in slots; one past the end
    cdef double* scratch               # for learning: values, terms, direction
    cdef readonly object fact_table    # what is known of each feature; see _facts.pxd
    cdef readonly object sample_table  # rows of the past
    cdef readonly object unit_table    # of y and of each feature; see _units.pxd
    cdef readonly object cost_table    # of each feature and each of several targets
    cdef TargetCost* costs             # of `cost_table`
    cdef ColumnUnits* units            # of `unit_table`
    cdef ColumnFacts* facts            # of `fact_table`
    cdef double* samples               # of `sample_table`
    # A buffer for a permuted row: values, encoded values, and terms.
    cdef double* permuted
    cdef Slot** found                  # for learning: the slot of each feature of the row
    cdef double* levels                # of `encoding_table`


cdef void set_may_split(Columns columns, const unsigned char* allowed) noexcept nogil
cdef void clear_watch(Columns columns, double* page) noexcept nogil
