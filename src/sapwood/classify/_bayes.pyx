"""Naive Bayes in the leaves of a tree of classes, as in VFDT.

Each leaf has, for every feature, a normal distribution of each class, or the weight of each
category in each class. They start empty when the leaf is split off. The prior of a class is its
share among the rows of the leaf, which the tree knows. Leaves are known by their nodes.
"""

import numpy as np
from libc.math cimport INFINITY, NAN, exp, log
from libc.stdint cimport int32_t, int64_t

from sapwood.records import check, doubles

cdef enum:
    CATEGORIES = 64  # codes of a feature; the last is that of all others

# What the logarithm of a density is at the least, as of a value that a class has never had.
cdef double LEAST_LOG = -500.0
cdef double LOG_2_PI = 1.8378770664093453
# What weights and sums of squares are at the most; then no square overflows.
cdef double MOST = 1e200

ARRAYS = ("bayes_nodes", "bayes_moments", "bayes_categories", "bayes_right")


cdef class LeafBayes:
    """The tables of all leaves.

    Parameters
    ----------
    adaptive : bool
        Whether a leaf predicts by naive Bayes only where that was right at least as often as the
        most frequent class.
    classes : int
        The columns of ratings.
    """

    cdef readonly bint adaptive
    cdef readonly Py_ssize_t classes
    cdef public dict places             # of the leaf of each node, in the tables
    cdef public object moments          # weight, mean and M2 by leaf, feature and class
    cdef public object categories       # weight by leaf, feature, code and class
    cdef public object right            # weight of rows that the majority and Bayes were right in

    def __init__(self, bint adaptive, Py_ssize_t classes):
        self.adaptive, self.classes, self.places = adaptive, classes, {}
        self.moments = np.zeros((0, 0, classes, 3))
        self.categories = np.zeros((0, 0, CATEGORIES, classes))
        self.right = np.zeros((0, 2))

    @property
    def nbytes(self):
        """Bytes of the tables."""
        return self.moments.nbytes + self.categories.nbytes + self.right.nbytes

    def widened(self, Py_ssize_t classes):
        """Return a copy for more classes, of which the new ones were never seen."""
        cdef LeafBayes made = LeafBayes(self.adaptive, classes)
        cdef Py_ssize_t more = classes - self.classes
        made.places = dict(self.places)
        made.moments = np.pad(self.moments, ((0, 0), (0, 0), (0, more), (0, 0)))
        made.categories = np.pad(self.categories, ((0, 0), (0, 0), (0, 0), (0, more)))
        made.right = self.right.copy()
        return made

    def state(self, leaves):
        """Return the arrays of `ARRAYS`, those of some nodes alone."""
        nodes = [node for node in sorted(self.places) if node in leaves]
        at = [self.places[node] for node in nodes]
        tables = self.moments[at], self.categories[at], self.right[at]
        return dict(zip(ARRAYS, (np.array(nodes, np.int64), *tables), strict=True))

    def restore(self, arrays, leaves, Py_ssize_t features):
        """Take over what `state` returned, of which nothing is trusted."""
        nodes, moments, categories, right = (arrays[name] for name in ARRAYS)
        check(nodes.dtype == np.int64 and nodes.ndim == 1, "the nodes of naive Bayes are none")
        places = {node: place for place, node in enumerate(nodes.tolist())}
        good = len(places) == len(nodes) and places.keys() <= set(leaves)
        check(good, "naive Bayes is of nodes that are no leaves")
        wide = moments.shape[1] if moments.ndim == 4 else 0
        check(wide <= features, "naive Bayes is of features that there are not")
        count = len(nodes)
        doubles(moments, (count, wide, self.classes, 3), "the moments of naive Bayes")
        shape = count, wide, CATEGORIES, self.classes
        doubles(categories, shape, "the categories of naive Bayes")
        doubles(right, (count, 2), "the hits of naive Bayes")
        good = abs(moments).max(initial=0.0) <= MOST and categories.max(initial=0.0) <= MOST
        good = good and (moments[..., ::2] >= 0).all() and (categories >= 0).all()
        check(bool(good and (right >= 0).all()), "a sum of naive Bayes is wrong")
        self.places, self.moments = places, moments.copy()
        self.categories, self.right = categories.copy(), right.copy()

    def reserve(self, const int32_t[::1] nodes, Py_ssize_t features):
        """Have tables for the leaves of some nodes, and for so many features."""
        cdef set fresh = set(np.asarray(nodes).tolist())
        fresh -= self.places.keys()
        cdef Py_ssize_t leaves = len(self.right), wide = self.moments.shape[1]
        cdef Py_ssize_t room = leaves, more = max(0, features - wide)
        while room < len(self.places) + len(fresh):
            room = max(8, 2 * room)
        if room > leaves or more:
            first = ((0, room - leaves), (0, more), (0, 0), (0, 0))
            moments = np.pad(self.moments, first)
            categories = np.pad(self.categories, first)
            right = np.pad(self.right, ((0, room - leaves), (0, 0)))
            self.moments, self.categories, self.right = moments, categories, right
        for node in sorted(fresh):
            self.places[node] = len(self.places)

    def rate(
        self, const double[:, ::1] X, const char[::1] is_category, const int32_t[::1] nodes,
        double[:, ::1] ratings,
    ):
        """Replace the ratings of the tree, the shares of classes, where a leaf is to use Bayes."""
        cdef double[::1] own = np.empty(self.classes)
        cdef const double[:, ::1] right = self.right
        cdef Leaf leaf
        cdef Tables tables = Tables(self)
        cdef Py_ssize_t row, place
        for row in range(len(X)):
            place = self.places.get(nodes[row], -1)
            if place < 0:
                continue
            leaf = tables.leaf(place)
            if posterior(X[row], is_category, &leaf, ratings[row], own) and not (
                self.adaptive and right[place, 0] > right[place, 1]
            ):
                ratings[row, :] = own

    def learn(
        self, const double[:, ::1] X, const char[::1] is_category, const int32_t[::1] nodes,
        double[:, ::1] ratings, const int64_t[::1] codes, const double[:] w, char[::1] done,
        labels_before,
    ):
        """Rate each row and then learn it, as `rate` and then this for one row after the other.

        There has to be room for their leaves and features. `done` is set with the last change.
        `labels_before` has the number of categories that each feature had before the first row.
        """
        cdef double[::1] own = np.empty(self.classes), values = np.empty(X.shape[1])
        cdef double[::1] labels = np.array(labels_before, np.float64)
        cdef double[:, ::1] right = self.right
        cdef const int64_t[::1] places = np.array(
            [self.places[node] for node in np.asarray(nodes).tolist()], np.int64
        )
        cdef Leaf leaf
        cdef Tables tables = Tables(self)
        cdef Py_ssize_t row, feature, place, majority
        cdef bint is_rated
        for row in range(len(X)):
            place = places[row]
            leaf = tables.leaf(place)
            values[:] = X[row]
            hide_new_labels(values, is_category, labels)
            is_rated = posterior(values, is_category, &leaf, ratings[row], own)
            majority = greatest(ratings[row])
            if is_rated and not (self.adaptive and right[place, 0] > right[place, 1]):
                ratings[row, :] = own
            if w[row] > 0.0:
                right[place, 0] += w[row] * (majority == codes[row])
                right[place, 1] += w[row] * (is_rated and greatest(own) == codes[row])
                for feature in range(X.shape[1]):
                    learn_value(
                        X[row, feature], w[row], is_category[feature],
                        leaf.moments + 3 * (leaf.classes * feature + codes[row]),
                        leaf.categories + leaf.classes * CATEGORIES * feature + codes[row],
                        leaf.classes,
                    )
        done[0] = 1


cdef struct Leaf:
    # The tables of a leaf.
    double* moments
    double* categories
    Py_ssize_t features
    Py_ssize_t classes


cdef class Tables:
    """Where the tables of leaves are.

    Parameters
    ----------
    bayes : LeafBayes
        Which has them; nobody reserves more meanwhile.
    """

    cdef double[:, ::1] moments
    cdef double[:, ::1] categories
    cdef Py_ssize_t features
    cdef Py_ssize_t classes

    def __init__(self, LeafBayes bayes):
        cdef Py_ssize_t leaves = len(bayes.right)
        self.features, self.classes = bayes.moments.shape[1], bayes.classes
        self.moments = bayes.moments.reshape(leaves, self.features * self.classes * 3)
        self.categories = bayes.categories.reshape(
            leaves, self.features * CATEGORIES * self.classes
        )

    cdef Leaf leaf(self, Py_ssize_t place):
        """The tables of a leaf; without features they are not read."""
        if self.features == 0:
            return Leaf(NULL, NULL, 0, self.classes)
        return Leaf(
            &self.moments[place, 0], &self.categories[place, 0], self.features, self.classes
        )


cdef void hide_new_labels(
    double[::1] x, const char[::1] is_category, double[::1] labels
) noexcept:
    """Make categories missing that are new in a row, as for its prediction, and count them."""
    cdef Py_ssize_t feature
    for feature in range(x.shape[0]):
        if is_category[feature] and labels[feature] <= x[feature]:
            labels[feature] += 1.0
            if labels[feature] < CATEGORIES:
                x[feature] = NAN


cdef void learn_value(
    double x, double w, bint is_category, double* moments, double* categories, Py_ssize_t classes
) noexcept:
    """Learn a value of a class; nothing where it is missing."""
    cdef double delta
    if x != x:
        return
    moments[0] += w
    if is_category:
        categories[classes * min(<Py_ssize_t>x, <Py_ssize_t>CATEGORIES - 1)] += w
        return
    delta = x - moments[1]
    moments[1] += delta * (w / moments[0])
    moments[2] = min(moments[2] + w * delta * (x - moments[1]), MOST)


cdef Py_ssize_t greatest(const double[::1] ratings) noexcept:
    """The first class of the highest rating."""
    cdef Py_ssize_t code, best = 0
    for code in range(1, ratings.shape[0]):
        best = code if ratings[code] > ratings[best] else best
    return best


cdef bint posterior(
    const double[::1] x, const char[::1] is_category, const Leaf* leaf,
    const double[::1] shares, double[::1] found,
) noexcept:
    """Set the probabilities of classes by naive Bayes; false if the leaf has learned no row."""
    cdef Py_ssize_t code, feature
    cdef double most = -INFINITY, total = 0.0
    cdef const double* moments
    cdef bint was_seen
    for code in range(leaf.classes):
        found[code], was_seen = log(max(shares[code], 1e-12)), False
        for feature in range(min(x.shape[0], leaf.features)):
            moments = leaf.moments + 3 * (leaf.classes * feature + code)
            if not moments[0] > 0.0:
                continue
            was_seen = True
            if x[feature] == x[feature]:
                found[code] += (
                    log_share(
                        leaf.categories + leaf.classes * CATEGORIES * feature, leaf.classes,
                        <Py_ssize_t>x[feature], code,
                    )
                    if is_category[feature] else log_density(moments, x[feature])
                )
        if not was_seen:
            found[code] = -INFINITY
        most = max(most, found[code])
    if most == -INFINITY:
        return False
    for code in range(leaf.classes):
        found[code] = exp(found[code] - most)
        total += found[code]
    for code in range(leaf.classes):
        found[code] /= total
    return True


cdef double log_density(const double* moments, double x) noexcept:
    """The logarithm of the density of a class; without variance that of a single value."""
    cdef double variance = 0.0, distance = x - moments[1]
    if moments[0] > 1.0:
        variance = moments[2] / (moments[0] - 1.0)
    if not variance > 1e-18 * moments[1] * moments[1]:
        return 0.0 if distance == 0.0 else LEAST_LOG
    return max(-0.5 * (LOG_2_PI + log(variance) + distance * (distance / variance)), LEAST_LOG)


cdef double log_share(
    const double* categories, Py_ssize_t classes, Py_ssize_t category, Py_ssize_t code
) noexcept:
    """The logarithm of the share of a category in a class, as if it had each one once more."""
    cdef double weight = 0.0, of_any
    cdef Py_ssize_t each, other, seen = 0
    category = min(category, <Py_ssize_t>CATEGORIES - 1)
    for each in range(CATEGORIES):
        of_any = 0.0
        for other in range(classes):
            of_any += categories[classes * each + other]
        seen += of_any > 0.0 or each == category
        weight += categories[classes * each + code]
    return log((categories[classes * category + code] + 1.0) / (weight + seen))
