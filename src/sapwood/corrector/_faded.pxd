"""Sums of products that fade, and the coefficients of a ridge regression that they say.

A row has n regressors d and a target t. Kept are the faded sums of t d, and of d d' as its lower
triangle, row by row. With a ridge r and a centre c, the coefficients solve

    (sum of d d' + r I) x = sum of t d + r c
"""

cdef enum:
    MOST_REGRESSORS = 32


cdef inline Py_ssize_t triangle(Py_ssize_t n) noexcept nogil:
    """The numbers in the lower triangle of a matrix."""
    return n * (n + 1) // 2


cdef inline void add_products(
    double* products, double* joint, Py_ssize_t n, const double* d, double target,
    double fade, double weight,
) noexcept nogil:
    """Fade all sums, and add a row."""
    cdef Py_ssize_t i, j
    cdef double weighted
    cdef double own[MOST_REGRESSORS]  # a copy, which no sum can overwrite
    for i in range(n):
        own[i] = d[i]
    for i in range(n):
        weighted = weight * own[i]
        for j in range(i + 1):
            products[j] = fade * products[j] + weighted * own[j]
        products += i + 1
        joint[i] = fade * joint[i] + weighted * target


cdef inline void descend(
    const double* products, const double* joint, Py_ssize_t n, double ridge, double centre,
    double most, double* x,
) noexcept nogil:
    """Improve each coefficient once, the others given, within 0 and a bound."""
    cdef Py_ssize_t i, j
    cdef double rest, curvature
    for i in range(n):
        rest = joint[i] + ridge * centre
        for j in range(i):
            rest -= products[triangle(i) + j] * x[j]
        for j in range(i + 1, n):
            rest -= products[triangle(j) + i] * x[j]
        curvature = products[triangle(i) + i] + ridge
        if curvature > 0.0:
            rest /= curvature
            rest = rest if rest > 0.0 else 0.0
            x[i] = rest if rest < most else most


cdef inline void solve(
    const double* products, const double* joint, Py_ssize_t n, double ridge, double* factors,
    double* x,
) noexcept nogil:
    """Set the coefficients for a centre of 0; `factors` is room for a triangle.

    By products + r I = L D L': L is left below the diagonal, and one over D in it, or 0 where all
    is 0, and then so is the coefficient.
    """
    cdef Py_ssize_t i, j, k
    cdef double rest, moved
    cdef double* row = factors
    cdef const double* other
    for i in range(n):
        other = factors
        for j in range(i):
            rest = products[j]
            for k in range(j):
                rest -= row[k] * other[k]
            row[j] = rest  # L times D, until the row is complete
            other += j + 1
        rest = products[i] + ridge
        for j in range(i):
            moved = row[j] * factors[triangle(j) + j]
            rest -= moved * row[j]
            row[j] = moved
        row[i] = 1.0 / rest if rest > 0.0 else 0.0
        row += i + 1
        products += i + 1
    for i in range(n):
        x[i] = joint[i]
        for k in range(i):
            x[i] -= factors[triangle(i) + k] * x[k]
    for i in range(n):
        x[i] *= factors[triangle(i) + i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= factors[triangle(k) + i] * x[k]
