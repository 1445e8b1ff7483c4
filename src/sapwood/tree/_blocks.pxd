"""The inner loops of linear models, compiled twice: for any processor, and for one with AVX2.

Both compute the same bits: four numbers side by side, by the same operations in the same order.
The loops are spelt out, as compilers then turn four lines into one instruction.
"""

cdef extern from *:
    """
    #define SAPWOOD_ZERO(n) double n##0 = 0.0, n##1 = 0.0, n##2 = 0.0, n##3 = 0.0;
    #define SAPWOOD_SUM(n, four, by) { n##0 += (four)[0] * by; n##1 += (four)[1] * by;            \
                                       n##2 += (four)[2] * by; n##3 += (four)[3] * by; }
    #define SAPWOOD_SET(n, four) { (four)[0] = n##0; (four)[1] = n##1;                            \
                                   (four)[2] = n##2; (four)[3] = n##3; }
    #define SAPWOOD_LOOPS(WIDTH, FOR)                                                             \
    /* out = coefficients' z: what four linear models predict. */                                 \
    FOR static void sapwood_predict_##WIDTH(                                                      \
        const double *block, const double *z, Py_ssize_t terms, double *out)                      \
    {                                                                                             \
        Py_ssize_t i;                                                                             \
        SAPWOOD_ZERO(a)                                                                           \
        for (i = 0; i < terms; i++, block += 4)                                                   \
            SAPWOOD_SUM(a, block, z[i])                                                           \
        SAPWOOD_SET(a, out)                                                                       \
    }                                                                                             \
    /* out = coefficients' z and v = P z; the return value is z'v, as four sums. The first */     \
    /* columns of P are multiplied with the coefficients: sums that need not wait for others. */  \
    FOR static double sapwood_direct_##WIDTH(                                                     \
        const double *block, const double *p, const double *z, Py_ssize_t terms, double *out,     \
        double *v)                                                                                \
    {                                                                                             \
        const double *columns = p;                                                                \
        Py_ssize_t i, j = terms < 8 ? 4 : terms % 8 ? 12 : 8;                                     \
        SAPWOOD_ZERO(a) SAPWOOD_ZERO(b) SAPWOOD_ZERO(c) SAPWOOD_ZERO(d)                           \
        if (j == 12)                                                                              \
            for (i = 0; i < terms; i++, columns += terms, block += 4) {                           \
                SAPWOOD_SUM(a, block, z[i])                                                       \
                SAPWOOD_SUM(b, columns, z[i])                                                     \
                SAPWOOD_SUM(c, columns + 4, z[i])                                                 \
                SAPWOOD_SUM(d, columns + 8, z[i])                                                 \
            }                                                                                     \
        else if (j == 8)                                                                          \
            for (i = 0; i < terms; i++, columns += terms, block += 4) {                           \
                SAPWOOD_SUM(a, block, z[i])                                                       \
                SAPWOOD_SUM(b, columns, z[i])                                                     \
                SAPWOOD_SUM(c, columns + 4, z[i])                                                 \
            }                                                                                     \
        else                                                                                      \
            for (i = 0; i < terms; i++, columns += terms, block += 4) {                           \
                SAPWOOD_SUM(a, block, z[i])                                                       \
                SAPWOOD_SUM(b, columns, z[i])                                                     \
            }                                                                                     \
        SAPWOOD_SET(a, out)                                                                       \
        SAPWOOD_SET(b, v)                                                                         \
        if (j >= 8)                                                                               \
            SAPWOOD_SET(c, v + 4)                                                                 \
        if (j == 12)                                                                              \
            SAPWOOD_SET(d, v + 8)                                                                 \
        for (; j < terms; j += 8) {                                                               \
            SAPWOOD_ZERO(e) SAPWOOD_ZERO(f)                                                       \
            columns = p + j;                                                                      \
            for (i = 0; i < terms; i++, columns += terms) {                                       \
                SAPWOOD_SUM(e, columns, z[i])                                                     \
                SAPWOOD_SUM(f, columns + 4, z[i])                                                 \
            }                                                                                     \
            SAPWOOD_SET(e, v + j)                                                                 \
            SAPWOOD_SET(f, v + j + 4)                                                             \
        }                                                                                         \
        SAPWOOD_ZERO(g)                                                                           \
        for (i = 0; i < terms; i += 4) {                                                          \
            g0 += v[i] * z[i];                                                                    \
            g1 += v[i + 1] * z[i + 1];                                                            \
            g2 += v[i + 2] * z[i + 2];                                                            \
            g3 += v[i + 3] * z[i + 3];                                                            \
        }                                                                                         \
        return (g0 + g1) + (g2 + g3);                                                             \
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
    /* Weighted squared errors of four models: now; and of now and then, half and half. */        \
    FOR static void sapwood_score_##WIDTH(                                                        \
        double *errors, double *both, const double *now, const double *then, double y, double w,  \
        double fade)                                                                              \
    {                                                                                             \
        double a = y - now[0], b = y - now[1], c = y - now[2], d = y - now[3];                    \
        double e = y - then[0], f = y - then[1], g = y - then[2], h = y - then[3];                \
        e = fade * both[0] + w * (0.5 * (a * a + e * e));                                         \
        f = fade * both[1] + w * (0.5 * (b * b + f * f));                                         \
        g = fade * both[2] + w * (0.5 * (c * c + g * g));                                         \
        h = fade * both[3] + w * (0.5 * (d * d + h * h));                                         \
        a = fade * errors[0] + w * a * a;                                                         \
        b = fade * errors[1] + w * b * b;                                                         \
        c = fade * errors[2] + w * c * c;                                                         \
        d = fade * errors[3] + w * d * d;                                                         \
        errors[0] = a; errors[1] = b; errors[2] = c; errors[3] = d;                               \
        both[0] = e; both[1] = f; both[2] = g; both[3] = h;                                       \
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
        double unusual = sapwood_direct_any(block, p, z, terms, out, v);
        sapwood_move_any(block, v, terms, steps[0], steps[1], steps[2], steps[3]);
        sapwood_shrink_any(p, v, terms, steps[0]);
        return unusual;
    }
    #define sapwood_predict(b, z, n, o) SAPWOOD_BY_WIDTH(sapwood_predict, (b, z, n, o))
    #define sapwood_direct(b, p, z, n, o, v) SAPWOOD_BY_WIDTH(sapwood_direct, (b, p, z, n, o, v))
    #define sapwood_move(p, v, n, a, b, c, d) \
        SAPWOOD_BY_WIDTH(sapwood_move, (p, v, n, a, b, c, d))
    #define sapwood_score(e, s, now, then, y, w, f) \
        SAPWOOD_BY_WIDTH(sapwood_score, (e, s, now, then, y, w, f))
    #define sapwood_shrink(p, v, n, f) SAPWOOD_BY_WIDTH(sapwood_shrink, (p, v, n, f))
    """
    void predict_block "sapwood_predict"(
        const double* block, const double* z, Py_ssize_t terms, double* out
    ) noexcept nogil
    double predict_and_direct "sapwood_direct"(
        const double* block, const double* covariance, const double* z, Py_ssize_t terms,
        double* out, double* v
    ) noexcept nogil
    void move_block "sapwood_move"(
        double* block, const double* v, Py_ssize_t terms, double first, double second,
        double third, double fourth,
    ) noexcept nogil
    void score_block "sapwood_score"(
        double* errors, double* both, const double* now, const double* then, double y, double w,
        double fade,
    ) noexcept nogil
    void shrink_block "sapwood_shrink"(
        double* covariance, double* v, Py_ssize_t terms, double factor
    ) noexcept nogil
    double plain_step "sapwood_plain_step"(
        double* covariance, double* block, const double* z, double* v, Py_ssize_t terms,
        const double* steps, double* out
    ) noexcept nogil
