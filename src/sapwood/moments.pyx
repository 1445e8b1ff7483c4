"""Weight, mean and M2 of a stream: update, merge and subtract without cancellation."""

from libc.math cimport INFINITY, isfinite

from sapwood import validation

# Of a difference of two weights, less than this share of the larger is rounding.
cdef double WEIGHT_ROUNDING = 2.0**-50

cdef MomentState EMPTY = MomentState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


cdef void merge_states(MomentState* state, const MomentState* other) noexcept nogil:
    if state.weight == 0.0:
        state[0] = other[0]
    elif other.weight > 0.0:
        state_merge(state, other.weight, other.pivot, other.shift, other.shift_error)
        gain_m2(state, other.m2_error)
        gain_m2(state, other.m2)


cdef void subtract_state(MomentState* state, const MomentState* other) noexcept nogil:
    """The paper's equations 6 and 7; its delta is that of the new mean, found first."""
    cdef double whole = state.weight
    cdef double rest = whole - other.weight
    cdef double delta, pivots
    if other.weight == 0.0:
        return
    if rest <= WEIGHT_ROUNDING * whole:
        state[0] = EMPTY
        return
    pivots = other.pivot - state.pivot
    delta = pivots + ((other.shift - state.shift) + (other.shift_error - state.shift_error))
    state.shift = two_sum(
        state.shift, state.shift_error - delta * (other.weight / rest), &state.shift_error
    )
    delta = pivots + ((other.shift - state.shift) + (other.shift_error - state.shift_error))
    gain_m2(state, -other.m2)
    gain_m2(state, -other.m2_error)
    gain_m2(state, -other.weight * (rest / whole) * delta * delta)
    if state.m2 < 0.0:
        state.m2 = 0.0
        state.m2_error = 0.0
    state.weight = rest


cdef int check_range(const MomentState* state) except -1:
    if not (
        isfinite(state.weight)
        and isfinite(state.pivot + state.shift + state.shift_error)
        and isfinite(state.m2 + state.m2_error)
    ):
        raise OverflowError(
            "the weight, mean or M2 would exceed the largest double; "
            "nothing was changed. Scale y or the weights down"
        )
    return 0


cdef class Moments:
    """Weight, mean and sum of squared deviations of a stream of numbers.

    The mean is kept as a distance to one of the values, and M2 in two doubles, so that a stream
    is summarised as exactly as by a two-pass computation, however far it is from zero.

    Parameters
    ----------
    n : float
        Total weight; 0 makes the empty statistic.
    mean : float
        Weighted mean.
    m2 : float
        Weighted sum of the squared deviations from the mean.

    Notes
    -----
    ``a + b`` is Chan's merge: the moments of both streams together. ``ab - b`` takes b out
    again, and loses what the larger statistic could not hold: the relative error of the
    result's M2 is about 1e-16 * ab.m2 / (result).m2, so a small part taken from a large whole
    may have no correct digit left. It is never negative, and subtracting everything (or more)
    gives the empty statistic. Where both parts are at hand, merge them instead.

    Examples
    --------
    >>> a = Moments()
    >>> a.update_many([1.0, 2.0, 3.0])
    >>> a
    Moments(n=3.0, mean=2.0, m2=2.0)
    >>> a.variance()
    1.0
    >>> b = Moments()
    >>> b.update(10.0, w=2.0)
    >>> (a + b).mean
    5.2
    >>> a + Moments() == a
    True
    >>> a + b - a
    Moments(n=2.0, mean=10.0, m2=0.0)
    """

    __hash__ = None

    def __init__(self, double n=0.0, double mean=0.0, double m2=0.0):
        if not 0.0 <= n < INFINITY:
            raise ValueError(f"n = {n}: a total weight must be finite and not negative")
        if not (isfinite(mean) and 0.0 <= m2 < INFINITY):
            raise ValueError(
                f"mean = {mean}, m2 = {m2}: both must be finite, and m2 not negative"
            )
        if n == 0.0 and (mean != 0.0 or m2 != 0.0):
            raise ValueError(f"mean = {mean}, m2 = {m2}: the empty statistic has neither")
        self.state = EMPTY
        self.state.weight = n
        self.state.pivot = mean
        self.state.m2 = m2

    @property
    def n(self):
        """Total weight."""
        return self.state.weight

    @property
    def mean(self):
        """Weighted mean; 0 for the empty statistic."""
        return self.state.pivot + self.state.shift

    @property
    def m2(self):
        """Weighted sum of the squared deviations from the mean."""
        return self.state.m2

    def variance(self, double ddof=1.0):
        """Variance of the stream.

        Parameters
        ----------
        ddof : float
            Subtracted from the weight: 1 for the variance of a sample, 0 for a population's.
            Only with 0 does the scale of the weights have no effect.

        Returns
        -------
        float
            ``m2 / (n - ddof)``, or 0 where the weight does not exceed ``ddof``.

        Examples
        --------
        >>> m = Moments()
        >>> m.update_many([1.0, 3.0])
        >>> m.variance(), m.variance(ddof=0)
        (2.0, 1.0)
        """
        if not self.state.weight > ddof:
            return 0.0
        return self.state.m2 / (self.state.weight - ddof)

    def update(self, double y, double w=1.0):
        """Take one value.

        Parameters
        ----------
        y : float
            Any finite number.
        w : float
            Its weight, positive and finite.

        Raises
        ------
        ValueError
            If y or w is not valid.
        OverflowError
            If a moment would exceed the largest double; nothing is changed then.
        """
        cdef MomentState new = self.state
        if not (isfinite(y) and 0.0 < w < INFINITY):
            validation.refuse_value(y, w)
        state_merge(&new, w, y, 0.0, 0.0)
        check_range(&new)
        self.state = new

    def update_many(self, y, w=None):
        """Take many values: the same as `update` in a loop, or nothing at all.

        Parameters
        ----------
        y : array_like of float
            Any finite numbers.
        w : array_like of float, optional
            Their weights, positive and finite; 1 each if not given.
        """
        cdef const double[:] values = validation.column(y, "y")
        cdef const double[:] weights = validation.weights(w, values.shape[0])
        cdef MomentState new = self.state
        cdef Py_ssize_t row
        validation.check_values(values, weights)
        with nogil:
            for row in range(values.shape[0]):
                state_merge(&new, weights[row], values[row], 0.0, 0.0)
        check_range(&new)
        self.state = new

    def __iadd__(self, Moments other not None):
        cdef MomentState new = self.state
        merge_states(&new, &other.state)
        check_range(&new)
        self.state = new
        return self

    def __isub__(self, Moments other not None):
        cdef MomentState new = self.state
        subtract_state(&new, &other.state)
        check_range(&new)
        self.state = new
        return self

    def __add__(self, other):
        if not isinstance(self, Moments) or not isinstance(other, Moments):
            return NotImplemented
        result = self.copy()
        result += other
        return result

    def __sub__(self, other):
        if not isinstance(self, Moments) or not isinstance(other, Moments):
            return NotImplemented
        result = self.copy()
        result -= other
        return result

    def __eq__(self, other):
        if not isinstance(other, Moments):
            return NotImplemented
        return (self.n, self.mean, self.m2) == (other.n, other.mean, other.m2)

    def __repr__(self):
        return f"Moments(n={self.n!r}, mean={self.mean!r}, m2={self.m2!r})"

    def copy(self):
        """Return an independent copy."""
        cdef Moments new = Moments.__new__(Moments)
        new.state = self.state
        return new

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return restore, (
            self.state.weight,
            self.state.pivot,
            self.state.shift,
            self.state.shift_error,
            self.state.m2,
            self.state.m2_error,
        )


def restore(
    double n, double pivot, double shift, double shift_error, double m2, double m2_error
):
    """Make moments from all six of their numbers; for pickle."""
    cdef Moments new = Moments(n, pivot, m2)
    new.state.shift = shift
    new.state.shift_error = shift_error
    new.state.m2_error = m2_error
    check_range(&new.state)
    return new
