"""The walk of a row through a tree."""

cimport cython
from libc.stdint cimport int32_t, uint64_t

from sapwood.blend._layer cimport Saying
from sapwood.rows._dict_row cimport RowReader
from sapwood.tree._pace cimport Pace
from sapwood.tree._records cimport EXPERTS, TreeNote
from sapwood.tree._sharing cimport Sharing
from sapwood.tree._tables cimport TreeTables

cdef struct Outlook:
    # What the tree thinks of a row before it learns its y.
    Py_ssize_t leaf
    double experts[EXPERTS]  # what the mean and the linear models predict, from the leaf's origin
    double unusual           # how unusual the row is; known when it is learned
    double tree              # what they predict together
    Saying saying            # what the last layer makes of it; the prediction alone without one
    const double* said       # what they said when the row was predicted: just now, or as follows
    double then[EXPERTS]




@cython.final
cdef class TreeKernel(TreeTables):
    cdef void look(self, const double* row, double* scratch, Outlook* outlook) noexcept nogil
    cdef inline void ask_experts(
        self, const double* row, double* scratch, Outlook* outlook
    ) noexcept nogil
    cdef inline void mix_experts(self, Outlook* outlook) noexcept nogil
    cdef inline void say_last(self, Outlook* outlook) noexcept nogil
    cdef inline void find_slots(self, Py_ssize_t leaf, const double* row) noexcept nogil
    cdef uint64_t key_of(
        self, const double* row, Py_ssize_t number, const Py_ssize_t* first_value
    ) noexcept nogil
    cdef inline bint has_learned(self, Py_ssize_t feature, Py_ssize_t code) noexcept nogil
    cdef void take_down(self, const Outlook* outlook, TreeNote* note) noexcept nogil
    cdef const Saying* recall(self, uint64_t key, bint at_once, Outlook* outlook) noexcept nogil
    cdef inline void take(
        self, const double* row, double y, double w, const Outlook* outlook
    ) noexcept nogil
    cdef inline void judge_experts(
        self, double target, double w, const Outlook* outlook
    ) noexcept nogil
    cdef inline bint see_columns(
        self, const double* row, double y, double w, const Outlook* outlook
    ) noexcept nogil
    cdef void permute(
        self, const double* row, double y, double w, const Outlook* outlook, uint64_t bits
    ) noexcept nogil
    cdef void keep_sample(self, const double* row, Py_ssize_t sample) noexcept nogil
    cdef double say_aside(self, const double* values) noexcept nogil
    cdef void weigh_units(self, const double* raw, double y, const Outlook* outlook) noexcept nogil
    cdef double say_in_units(self, const double* raw, int kind) noexcept nogil
    cdef inline const double* with_levels(self, const double* row, double* room) noexcept nogil
    cdef const double* without_suspects(self, const double* row, double* room) noexcept nogil
    cdef void set_levels(self, const double* row, double* values) noexcept nogil
    cdef void learn_row(
        self,
        const double* row,
        const double* raw,
        double y,
        double w,
        uint64_t key,
        bint at_once,
        Outlook* outlook,
    ) noexcept nogil
    cdef int learn_row_of_targets(
        self, const double* row, const double* y, double w, Py_ssize_t number,
        const Py_ssize_t* first_value, bint at_once, Py_ssize_t leaf, double* predictions,
    ) except -1 nogil
    cdef inline double learn_linear(
        self, Py_ssize_t leaf, const Outlook* outlook, double target, double w
    ) noexcept nogil
    cdef inline void watch_row(
        self, Py_ssize_t leaf, const double* row, double target, double residual, double w
    ) noexcept nogil
    cdef void observe(
        self,
        Py_ssize_t leaf,
        Py_ssize_t feature,
        double x,
        double target,
        double residual,
        double w,
    ) noexcept nogil
    cdef void move_origin(self, Py_ssize_t leaf, double origin) noexcept nogil
    cdef void learn_levels(self, const double* row, double y, double w) noexcept nogil
    cdef int make_ready(self, Py_ssize_t leaf, double w) except -1 nogil
    cdef int make_room_for_element(self, Py_ssize_t leaf, Py_ssize_t feature) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef bint foresee(self, RowReader reader, x, bint asked, Outlook* outlook) except -1
    cdef inline void end_writing(self, Sharing sharing) noexcept
    cdef int stop_between_rows(self, Py_ssize_t row, Pace* pace) except -1 nogil
    cdef void answer_askers(self) noexcept nogil
    cdef int predict_all(
        self,
        const double[:, ::1] X,
        double[::1] predictions,
        int32_t[::1] regions,
        double* scratch,
        double* notes,
        Py_ssize_t first_noted,
    ) except -1
