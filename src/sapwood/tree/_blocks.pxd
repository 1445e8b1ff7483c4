"""The inner loops of linear models, compiled twice: for any processor, and for one with AVX2.

Both compute the same bits: four numbers side by side, by the same operations in the same order.
The loops are spelt out, as compilers then turn four lines into one instruction.
"""

cdef extern from *:
    """
    #define SAPWOOD_LOOPS(WIDTH, FOR)                                                             \
    /* out = coefficients' z: what four linear models predict. */                                 \
    FOR static void sapwood_predict_##WIDTH(                                                      \
        const double *columns, Py_ssize_t width, const double *z, Py_ssize_t terms, double *out)  \
    {                                                                                             \
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;                                                \
        Py_ssize_t i;                                                                             \
        for (i = 0; i < terms; i++, columns += width) {                                           \
            a += columns[0] * z[i];                                                               \
            b += columns[1] * z[i];                                                               \
            c += columns[2] * z[i];                                                               \
            d += columns[3] * z[i];                                                               \
        }                                                                                         \
        out[0] = a; out[1] = b; out[2] = c; out[3] = d;                                           \
    }                                                                                             \
    /* v = P z; the return value is z'v, as four sums. */                                         \
    FOR static double sapwood_direction_##WIDTH(                                                  \
        const double *p, const double *z, Py_ssize_t terms, double *v)                            \
    {                                                                                             \
        double a, b, c, d, e, f, g, h;                                                            \
        const double *columns;                                                                    \
        Py_ssize_t i, j;                                                                          \
        for (j = 0; j + 8 <= terms; j += 8) {                                                     \
            a = b = c = d = e = f = g = h = 0.0;                                                  \
            columns = p + j;                                                                      \
            for (i = 0; i < terms; i++, columns += terms) {                                       \
                a += columns[0] * z[i];                                                           \
                b += columns[1] * z[i];                                                           \
                c += columns[2] * z[i];                                                           \
                d += columns[3] * z[i];                                                           \
                e += columns[4] * z[i];                                                           \
                f += columns[5] * z[i];                                                           \
                g += columns[6] * z[i];                                                           \
                h += columns[7] * z[i];                                                           \
            }                                                                                     \
            v[j] = a; v[j + 1] = b; v[j + 2] = c; v[j + 3] = d;                                   \
            v[j + 4] = e; v[j + 5] = f; v[j + 6] = g; v[j + 7] = h;                               \
        }                                                                                         \
        if (j < terms)                                                                            \
            sapwood_predict_##WIDTH(p + j, terms, z, terms, v + j);                               \
        a = b = c = d = 0.0;                                                                      \
        for (i = 0; i < terms; i += 4) {                                                          \
            a += v[i] * z[i];                                                                     \
            b += v[i + 1] * z[i + 1];                                                             \
            c += v[i + 2] * z[i + 2];                                                             \
            d += v[i + 3] * z[i + 3];                                                             \
        }                                                                                         \
        return (a + b) + (c + d);                                                                 \
    }                                                                                             \
    /* Four models move along v, each by a multiple of its own. */                                \
    FOR static void sapwood_move_##WIDTH(                                                         \
        double *block, const double *v, Py_ssize_t terms, double a, double b, double c, double d) \
    {                                                                                             \
        double along;                                                                             \
        Py_ssize_t i;                                                                             \
        for (i = 0; i < terms; i++, block += 4) {                                                 \
            along = v[i];                                                                         \
            block[0] += along * a;                                                                \
            block[1] += along * b;                                                                \
            block[2] += along * c;                                                                \
            block[3] += along * d;                                                                \
        }                                                                                         \
    }                                                                                             \
    /* v *= factor, P -= v v'. */                                                                 \
    FOR static void sapwood_shrink_##WIDTH(double *p, double *v, Py_ssize_t terms, double factor) \
    {                                                                                             \
        double a, b, c, d, minus;                                                                 \
        double *columns;                                                                          \
        Py_ssize_t i, j;                                                                          \
        for (j = 0; j < terms; j += 4) {                                                          \
            a = v[j] * factor; b = v[j + 1] * factor;                                             \
            c = v[j + 2] * factor; d = v[j + 3] * factor;                                         \
            v[j] = a; v[j + 1] = b; v[j + 2] = c; v[j + 3] = d;                                   \
        }                                                                                         \
        for (j = 0; j < terms; j += 4) {                                                          \
            a = v[j]; b = v[j + 1]; c = v[j + 2]; d = v[j + 3];                                   \
            columns = p + j;                                                                      \
            for (i = 0; i < terms; i++, columns += terms) {                                       \
                minus = -v[i];                                                                    \
                columns[0] += minus * a;                                                          \
                columns[1] += minus * b;                                                          \
                columns[2] += minus * c;                                                          \
                columns[3] += minus * d;                                                          \
            }                                                                                     \
        }                                                                                         \
    }

    SAPWOOD_LOOPS(any, CYTHON_UNUSED)
    #if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
    SAPWOOD_LOOPS(avx2, CYTHON_UNUSED __attribute__((target("avx2"))))
    #define SAPWOOD_BY_WIDTH(loop, arguments) \
        (__builtin_cpu_supports("avx2") ? loop##_avx2 arguments : loop##_any arguments)
    #else
    #define SAPWOOD_BY_WIDTH(loop, arguments) loop##_any arguments
    #endif
    /* One step of the models by the loops for any processor, for a test that compares both. */
    CYTHON_UNUSED static double sapwood_plain_step(
        double *p, double *block, const double *z, double *v, Py_ssize_t terms,
        const double *steps, double *out)
    {
        double unusual = sapwood_direction_any(p, z, terms, v);
        sapwood_predict_any(block, 4, z, terms, out);
        sapwood_move_any(block, v, terms, steps[0], steps[1], steps[2], steps[3]);
        sapwood_shrink_any(p, v, terms, steps[0]);
        return unusual;
    }
    #define sapwood_predict(c, w, z, n, o) SAPWOOD_BY_WIDTH(sapwood_predict, (c, w, z, n, o))
    #define sapwood_direction(p, z, n, v) SAPWOOD_BY_WIDTH(sapwood_direction, (p, z, n, v))
    #define sapwood_move(p, v, n, a, b, c, d) \
        SAPWOOD_BY_WIDTH(sapwood_move, (p, v, n, a, b, c, d))
    #define sapwood_shrink(p, v, n, f) SAPWOOD_BY_WIDTH(sapwood_shrink, (p, v, n, f))
    """
    void predict_block "sapwood_predict"(
        const double* columns, Py_ssize_t width, const double* z, Py_ssize_t terms, double* out
    ) noexcept nogil
    double find_direction "sapwood_direction"(
        const double* covariance, const double* z, Py_ssize_t terms, double* v
    ) noexcept nogil
    void move_block "sapwood_move"(
        double* block, const double* v, Py_ssize_t terms, double first, double second,
        double third, double fourth,
    ) noexcept nogil
    void shrink_block "sapwood_shrink"(
        double* covariance, double* v, Py_ssize_t terms, double factor
    ) noexcept nogil
    double plain_step "sapwood_plain_step"(
        double* covariance, double* block, const double* z, double* v, Py_ssize_t terms,
        const double* steps, double* out
    ) noexcept nogil
