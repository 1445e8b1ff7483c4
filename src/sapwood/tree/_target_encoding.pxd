"""Target encoding of high-cardinality categories: a number that replaces the code of a category.

The *encoding* of a category is the mean of its y, measured from the first y of the tree and shrunk
towards the mean of all categories. The prior weight, in rows of average weight, is the variance of
y within categories divided by the variance between them. So a new category has the overall mean,
and a category that was seen once moves only as far as one row is evidence. Means have a bounded
memory, so that they follow a category that changes. A row is encoded before its y is learned, so no
y leaks into its own prediction.

The encodings of a feature are pairs of weight and mean: HEAD pairs for all of its rows, then one
pair for each code that has a place. A feature of ids has no places, and counts as missing.

An *encoded row* has encodings in place of codes. The original row is stored before it, in reverse
order. Splits that were made while there were few categories read the code there, and so does
learning.

With several targets, each has its own encodings, which its linear models read. Splits are shared by
all targets. They read the *split encoding* of a category, a weighted sum of its encodings (see
_split_encoding.pyx), and an encoded row contains these numbers.
"""

from libc.math cimport NAN

cdef enum:
    # Pairs before the places: y; squares within categories; squares around the overall mean.
    HEAD = 3
    REPEATS = 10  # rows of categories that had been seen, before squares are believed
    MOST_PRIOR = 16  # rows, and one over the fewest, by which a mean is shrunk
    MEMORY = 256  # rows of usual weight that the mean of a category remembers
    MEMORY_OF_ALL = 16384  # and those of all


cdef inline double prior_rows(const double* levels, double row_weight) noexcept nogil:
    """The prior weight, in rows, of the overall mean in the encoding of a category."""
    cdef double within = levels[3], between = levels[5] - within
    if levels[2] < REPEATS * row_weight:
        return 1.0
    if within >= MOST_PRIOR * between:
        return MOST_PRIOR
    return within / between if MOST_PRIOR * within > between else 1.0 / MOST_PRIOR


cdef inline double encoding_of(
    const double* levels, Py_ssize_t places, double code, double row_weight
) noexcept nogil:
    """The encoding of a code; NaN if there is none."""
    cdef const double* own
    if places == 0 or not levels[0] > 0.0:
        return NAN
    if not code < places:
        return levels[1]
    own = levels + 2 * (HEAD + <Py_ssize_t>code)
    if own[0] == 0.0:
        return levels[1]
    row_weight *= prior_rows(levels, row_weight)
    return levels[1] + (own[1] - levels[1]) * (own[0] / (own[0] + row_weight))


cdef inline double split_encoding_of(
    const double* encodings, Py_ssize_t places, double code
) noexcept nogil:
    """The split encoding of a code, or of a new one; NaN if there is none."""
    cdef double own = encodings[1 + <Py_ssize_t>code] if code < places else NAN
    return own if own == own else encodings[0]


cdef inline bint is_known(const double* levels, Py_ssize_t places, double code) noexcept nogil:
    """Whether a y of a code was learned."""
    return code < places and levels[2 * (HEAD + <Py_ssize_t>code)] > 0.0


cdef inline void add_to(double* pair, double value, double w, double most) noexcept nogil:
    """Add a value to a mean, whose weight is limited to `most`, or to this row."""
    cdef double weight = pair[0] + w
    weight = weight if weight < most else most
    pair[0] = weight if weight > w else w
    pair[1] += (value - pair[1]) * (w / pair[0])


cdef inline void update_encoding(
    double* levels, Py_ssize_t places, double code, double y, double w, double row_weight
) noexcept nogil:
    """Add a y to a code, and to all."""
    cdef double most = MEMORY_OF_ALL * row_weight
    cdef double* own = levels + 2 * (HEAD + <Py_ssize_t>code)
    cdef double delta
    if not code < places:
        return
    if own[0] > 0.0:
        delta = y - own[1]
        add_to(levels + 2, delta * delta * (own[0] / (own[0] + w)), w, most)
    if levels[0] > 0.0:
        delta = y - levels[1]
        add_to(levels + 4, delta * delta * (levels[0] / (levels[0] + w)), w, most)
    add_to(levels, y, w, most)
    add_to(own, y, w, MEMORY * row_weight)


cdef inline const double* with_target_encodings(
    const double* row,
    double* room,
    const Py_ssize_t* places,
    const double* levels,
    Py_ssize_t features,
    double row_weight,
) noexcept nogil:
    """Return an encoded row, in a buffer of twice as many doubles as there are features."""
    cdef double* values = room + features
    cdef Py_ssize_t feature
    for feature in range(features):
        values[feature] = values[-1 - feature] = row[feature]
        if places[feature] >= 0:
            if row[feature] == row[feature]:
                values[feature] = encoding_of(levels, places[feature], row[feature], row_weight)
            levels += 2 * (HEAD + places[feature])
    return values


cdef inline const double* with_split_encodings(
    const double* row,
    double* room,
    const Py_ssize_t* places,
    const double* encodings,
    Py_ssize_t features,
) noexcept nogil:
    """Return a row with split encodings, in a buffer as for `with_target_encodings`."""
    cdef double* values = room + features
    cdef Py_ssize_t feature
    for feature in range(features):
        values[feature] = values[-1 - feature] = row[feature]
        if places[feature] >= 0:
            if row[feature] == row[feature]:
                values[feature] = split_encoding_of(encodings, places[feature], row[feature])
            encodings += 1 + places[feature]
    return values
