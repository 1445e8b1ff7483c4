"""Categories of many: the level of each, which stands for it wherever numbers are meant.

The *level* of a category is the mean of its y so far, from the first y of the tree, and shrunk
towards the mean of all: by so many rows of usual weight as the variance of y within categories is
times that between them. So a category of which nothing is known has the level of all, and one that
was seen once is believed as far as it is worth. No mean remembers more than so many rows, so that
it follows where a category goes. A row is given its levels before its y is learned,
so that no y leaks into its own prediction.

The levels of a feature are pairs of weight and mean: HEAD of them for all of its rows, then one for
each code that has a place. A feature of ids has no places, and counts as missing.

A row *with levels* has them in place of codes, and before it, in reverse, itself as it was: there
splits find the code that were made while there were few categories, and so does learning.

With several targets, each has levels of its own, by which a category enters its linear models. The
splits of all of them read one number in place of a code: its *split encoding*, a weighted sum of
its levels; see _encodings.pyx. It is what a row with levels holds then.
"""

from libc.math cimport NAN

cdef enum:
    # Pairs before the places: of y; of squares within a category, and about the mean of all.
    HEAD = 3
    REPEATS = 10  # rows of categories that had been seen, before squares are believed
    MOST_PRIOR = 16  # rows, and one over the fewest, by which a mean is shrunk
    MEMORY = 256  # rows of usual weight that the mean of a category remembers
    MEMORY_OF_ALL = 16384  # and those of all


cdef inline double prior_rows(const double* levels, double row_weight) noexcept nogil:
    """By how many rows the mean of a category is shrunk towards that of all."""
    cdef double within = levels[3], between = levels[5] - within
    if levels[2] < REPEATS * row_weight:
        return 1.0
    if within >= MOST_PRIOR * between:
        return MOST_PRIOR
    return within / between if MOST_PRIOR * within > between else 1.0 / MOST_PRIOR


cdef inline double level_of(
    const double* levels, Py_ssize_t places, double code, double row_weight
) noexcept nogil:
    """The level of a code; NaN if there is none."""
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
    """By which number splits read a code: its own, or that of a new one; NaN if there is none."""
    cdef double own = encodings[1 + <Py_ssize_t>code] if code < places else NAN
    return own if own == own else encodings[0]


cdef inline bint is_known(const double* levels, Py_ssize_t places, double code) noexcept nogil:
    """Whether a y of a code was learned."""
    return code < places and levels[2 * (HEAD + <Py_ssize_t>code)] > 0.0


cdef inline void add_to(double* pair, double value, double w, double most) noexcept nogil:
    """Add a value to a mean, which weighs no more than `most`, or than this row."""
    cdef double weight = pair[0] + w
    weight = weight if weight < most else most
    pair[0] = weight if weight > w else w
    pair[1] += (value - pair[1]) * (w / pair[0])


cdef inline void learn_level(
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


cdef inline const double* set_many_levels(
    const double* row,
    double* room,
    const Py_ssize_t* places,
    const double* levels,
    Py_ssize_t features,
    double row_weight,
) noexcept nogil:
    """A row with levels, in a room of twice as many doubles as there are features."""
    cdef double* values = room + features
    cdef Py_ssize_t feature
    for feature in range(features):
        values[feature] = values[-1 - feature] = row[feature]
        if places[feature] >= 0:
            if row[feature] == row[feature]:
                values[feature] = level_of(levels, places[feature], row[feature], row_weight)
            levels += 2 * (HEAD + places[feature])
    return values


cdef inline const double* set_split_encodings(
    const double* row,
    double* room,
    const Py_ssize_t* places,
    const double* encodings,
    Py_ssize_t features,
) noexcept nogil:
    """A row with split encodings, in a room as for `set_many_levels`."""
    cdef double* values = room + features
    cdef Py_ssize_t feature
    for feature in range(features):
        values[feature] = values[-1 - feature] = row[feature]
        if places[feature] >= 0:
            if row[feature] == row[feature]:
                values[feature] = split_encoding_of(encodings, places[feature], row[feature])
            encodings += 1 + places[feature]
    return values
