"""Exponentially weighted sums of products, and the ridge regression of these sums.

A row has n regressors d and a target t. Stored are the weighted sums of t d, and of d d' as its
lower triangle, row by row. With a ridge r and a centre c, the coefficients solve

    (sum of d d' + r I) x = sum of t d + r c
"""

cdef enum:
    MOST_REGRESSORS = 32

cdef extern from *:
    """
    /* The sums of four regressors, for any processor and for one with AVX2: the same bits. */
    static CYTHON_UNUSED void sapwood_add_products_any(
        double *products, double *joint, const double *d, double target, double decay,
        double weight)
    {
        double own[4], weighted;
        int i, j;
        for (i = 0; i < 4; i++)
            own[i] = d[i];
        for (i = 0; i < 4; i++) {
            weighted = weight * own[i];
            for (j = 0; j <= i; j++)
                products[j] = decay * products[j] + weighted * own[j];
            products += i + 1;
            joint[i] = decay * joint[i] + weighted * target;
        }
    }
    #if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
    #include <immintrin.h>
    CYTHON_UNUSED static __attribute__((target("avx2"))) void sapwood_add_products_avx2(
        double *products, double *joint, const double *d, double target, double decay,
        double weight)
    {
        /* One by one: they were written just now, and one by one. */
        const __m256d own = _mm256_setr_pd(d[0], d[1], d[2], d[3]), keep = _mm256_set1_pd(decay);
        const __m256d weighted = _mm256_mul_pd(_mm256_set1_pd(weight), own);
        /* The places of a triangle in their order: 00 10 11 20, 21 22 30 31, 32 33. */
        __m256d first = _mm256_mul_pd(
            _mm256_permute4x64_pd(weighted, 0x94), _mm256_permute4x64_pd(own, 0x10));
        __m256d second = _mm256_mul_pd(
            _mm256_permute4x64_pd(weighted, 0xFA), _mm256_permute4x64_pd(own, 0x49));
        __m128d third = _mm_mul_pd(
            _mm256_castpd256_pd128(_mm256_permute4x64_pd(weighted, 0xFF)),
            _mm256_extractf128_pd(own, 1));
        __m256d last = _mm256_mul_pd(weighted, _mm256_set1_pd(target));
        first = _mm256_add_pd(_mm256_mul_pd(keep, _mm256_loadu_pd(products)), first);
        second = _mm256_add_pd(_mm256_mul_pd(keep, _mm256_loadu_pd(products + 4)), second);
        third = _mm_add_pd(
            _mm_mul_pd(_mm256_castpd256_pd128(keep), _mm_loadu_pd(products + 8)), third);
        last = _mm256_add_pd(_mm256_mul_pd(keep, _mm256_loadu_pd(joint)), last);
        _mm256_storeu_pd(products, first);
        _mm256_storeu_pd(products + 4, second);
        _mm_storeu_pd(products + 8, third);
        _mm256_storeu_pd(joint, last);
    }
    #define sapwood_add_products(p, j, d, t, f, w) \
        (__builtin_cpu_supports("avx2") ? sapwood_add_products_avx2(p, j, d, t, f, w) \
            : sapwood_add_products_any(p, j, d, t, f, w))
    #else
    #define sapwood_add_products(p, j, d, t, f, w) sapwood_add_products_any(p, j, d, t, f, w)
    #endif
    """
    # For tests: the same for any processor.
    void add_products_plainly "sapwood_add_products_any"(
        double* products, double* joint, const double* d, double target, double decay, double weight
    ) noexcept nogil
    void add_products_of_four "sapwood_add_products"(
        double* products, double* joint, const double* d, double target, double decay, double weight
    ) noexcept nogil


cdef inline Py_ssize_t triangle(Py_ssize_t n) noexcept nogil:
    """The numbers in the lower triangle of a matrix."""
    return n * (n + 1) // 2


cdef inline void add_products(
    double* products, double* joint, Py_ssize_t n, const double* d, double target,
    double decay, double weight,
) noexcept nogil:
    """Decay all sums, and add a row."""
    cdef Py_ssize_t i, j
    cdef double weighted
    cdef double own[MOST_REGRESSORS]  # a copy, which no sum can overwrite
    if n == 4:
        add_products_of_four(products, joint, d, target, decay, weight)
        return
    for i in range(n):
        own[i] = d[i]
    for i in range(n):
        weighted = weight * own[i]
        for j in range(i + 1):
            products[j] = decay * products[j] + weighted * own[j]
        products += i + 1
        joint[i] = decay * joint[i] + weighted * target


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
