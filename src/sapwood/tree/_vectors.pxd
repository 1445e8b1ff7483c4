"""Steps of a row that treat four numbers at a time, compiled twice, as those of _blocks.pxd are.

Compilers do not join the comparisons in these. So each is written for any processor, and once more
with the instructions of AVX2. Both compute the same bits.
"""

cdef extern from *:
    """
    #include <math.h>
    /* A term: how far a value is from the centre; 0 if it is missing or too far to be true. */
    static CYTHON_UNUSED double sapwood_term(
        double value, double centre, double scale, double credible, double reach)
    {
        double distance = (value - centre) * scale;
        distance = fabs(distance) <= credible ? distance : 0.0;  /* NaN is below no bound */
        distance = distance < reach ? distance : reach;
        return distance > -reach ? distance : -reach;
    }
    /* All terms; whether a value is beyond its range: low and high, a stride after the last. */
    static CYTHON_UNUSED int sapwood_standardise_any(
        const double *centres, const double *scales, const double *values, const double *ranges,
        Py_ssize_t stride, Py_ssize_t features, double credible, double reach, double *z)
    {
        Py_ssize_t i;
        int beyond = 0;
        for (i = 0; i < features; i++, ranges += stride) {
            z[i] = sapwood_term(values[i], centres[i], scales[i], credible, reach);
            beyond |= (values[i] < ranges[0]) | (values[i] > ranges[1]);
        }
        return beyond;
    }
    /* The fourth power of an error in units of the least; within bounds, if that is 0. */
    static CYTHON_UNUSED double sapwood_power(double times_least)
    {
        times_least = times_least > 1.0 ? times_least : 1.0;
        times_least = times_least < 1e15 ? times_least : 1e15;
        times_least *= times_least;
        return times_least * times_least;
    }
    static CYTHON_UNUSED double sapwood_hold(double value, double lowest, double highest)
    {
        value = value > lowest ? value : lowest;
        return value < highest ? value : highest;
    }
    static CYTHON_UNUSED double sapwood_least(double a, double b) { return b < a ? b : a; }
    /* The mean of experts, from the powers of four, of which the last two arguments are sums. */
    static CYTHON_UNUSED double sapwood_mean(
        double first, double second, double third, double fourth, double one, double two,
        double mean_expert, double mean_error, int averaging)
    {
        double low = first * second, high = third * fourth, mean;
        double models = one * high, weight = (first + second) * high + (third + fourth) * low;
        models += two * low;
        if (!averaging)
            return models / weight;
        /* A power of 2 on both sides of the fraction, or the product of four large powers and a */
        /* large y would overflow. */
        mean = 0x1p-200 * sapwood_power(mean_error);
        low *= 0x1p-200;
        return (mean * models + low * high * mean_expert) / (mean * weight + low * high);
    }
    /* The powers of four experts' errors, and the error of the mean, in units of the least. */
    static CYTHON_UNUSED void sapwood_powers_any(
        const double *errors, int averaging, double *powers)
    {
        double least = sapwood_least(
            sapwood_least(errors[1], errors[2]), sapwood_least(errors[3], errors[4]));
        double per_least = 1.0 / ((averaging ? sapwood_least(errors[0], least) : least) + 1e-300);
        Py_ssize_t i;
        for (i = 0; i < 4; i++)
            powers[i] = sapwood_power(errors[1 + i] * per_least);
        powers[4] = errors[0] * per_least;
    }
    static CYTHON_UNUSED double sapwood_mix_any(
        double *experts, const double *p, int averaging, double lowest, double highest)
    {
        Py_ssize_t i;
        for (i = 1; i < 5; i++)
            experts[i] = sapwood_hold(experts[i], lowest, highest);
        return sapwood_mean(
            p[0], p[1], p[2], p[3], p[1] * experts[1] + p[0] * experts[2],
            p[3] * experts[3] + p[2] * experts[4], experts[0], p[4], averaging);
    }
    /* The slot of a feature whose slots start here; NULL while there is no grid. */
    static CYTHON_UNUSED double *sapwood_slot(
        const double *grid, double x, Py_ssize_t count, Py_ssize_t size, double *slots)
    {
        double place, last = (double)count - 0.5;
        if (x != x)
            return slots + size * count;
        if (!(grid[2] > 0.0))
            return NULL;
        place = (x - grid[0]) * grid[2];
        place = place > 0.0 ? place : 0.0;
        place = place < last ? place : last;
        return slots + size * (Py_ssize_t)place;
    }
    static CYTHON_UNUSED void sapwood_find_slots_any(
        const double *grids, const double *row, Py_ssize_t features, Py_ssize_t count,
        Py_ssize_t size, double *slots, double **found)
    {
        Py_ssize_t i;
        for (i = 0; i < features; i++)
            found[i] = sapwood_slot(
                grids + 4 * i, row[i], count, size, slots + size * (count + 1) * i);
    }
    #if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
    #include <immintrin.h>
    #define SAPWOOD_AVX2 CYTHON_UNUSED static __attribute__((target("avx2")))
    SAPWOOD_AVX2 int sapwood_standardise_avx2(
        const double *centres, const double *scales, const double *values, const double *ranges,
        Py_ssize_t stride, Py_ssize_t features, double credible, double reach, double *z)
    {
        const __m256d sign = _mm256_set1_pd(-0.0), most = _mm256_set1_pd(credible);
        const __m256d high = _mm256_set1_pd(reach), low = _mm256_set1_pd(-reach);
        __m256d d, x, even, odd, beyond = _mm256_setzero_pd();
        Py_ssize_t i;
        for (i = 0; i + 4 <= features; i += 4, ranges += 4 * stride) {
            x = _mm256_loadu_pd(values + i);
            even = _mm256_insertf128_pd(
                _mm256_castpd128_pd256(_mm_loadu_pd(ranges)), _mm_loadu_pd(ranges + 2 * stride), 1);
            odd = _mm256_insertf128_pd(
                _mm256_castpd128_pd256(_mm_loadu_pd(ranges + stride)),
                _mm_loadu_pd(ranges + 3 * stride), 1);
            beyond = _mm256_or_pd(
                beyond, _mm256_cmp_pd(x, _mm256_unpacklo_pd(even, odd), _CMP_LT_OQ));
            beyond = _mm256_or_pd(
                beyond, _mm256_cmp_pd(x, _mm256_unpackhi_pd(even, odd), _CMP_GT_OQ));
            d = _mm256_sub_pd(x, _mm256_loadu_pd(centres + i));
            d = _mm256_mul_pd(d, _mm256_loadu_pd(scales + i));
            d = _mm256_and_pd(d, _mm256_cmp_pd(_mm256_andnot_pd(sign, d), most, _CMP_LE_OQ));
            d = _mm256_max_pd(_mm256_min_pd(d, high), low);
            _mm256_storeu_pd(z + i, d);
        }
        return _mm256_movemask_pd(beyond) | sapwood_standardise_any(
            centres + i, scales + i, values + i, ranges, stride, features - i, credible, reach,
            z + i);
    }
    SAPWOOD_AVX2 void sapwood_powers_avx2(const double *errors, int averaging, double *powers)
    {
        __m256d own = _mm256_loadu_pd(errors + 1);
        __m128d both = _mm_min_pd(_mm256_castpd256_pd128(own), _mm256_extractf128_pd(own, 1));
        double one = _mm_cvtsd_f64(both), other = _mm_cvtsd_f64(_mm_unpackhi_pd(both, both));
        double least = sapwood_least(one, other);
        double per_least = 1.0 / ((averaging ? sapwood_least(errors[0], least) : least) + 1e-300);
        own = _mm256_mul_pd(own, _mm256_set1_pd(per_least));
        own = _mm256_max_pd(own, _mm256_set1_pd(1.0));
        own = _mm256_min_pd(own, _mm256_set1_pd(1e15));
        own = _mm256_mul_pd(own, own);
        _mm256_storeu_pd(powers, _mm256_mul_pd(own, own));
        powers[4] = errors[0] * per_least;
    }
    SAPWOOD_AVX2 double sapwood_mix_avx2(
        double *experts, const double *p, int averaging, double lowest, double highest)
    {
        __m256d value = _mm256_loadu_pd(experts + 1), power = _mm256_loadu_pd(p);
        double s[4];
        value = _mm256_max_pd(value, _mm256_set1_pd(lowest));
        value = _mm256_min_pd(value, _mm256_set1_pd(highest));
        _mm256_storeu_pd(experts + 1, value);
        _mm256_storeu_pd(s, _mm256_mul_pd(_mm256_permute_pd(power, 5), value));
        return sapwood_mean(
            p[0], p[1], p[2], p[3], s[0] + s[1], s[2] + s[3], experts[0], p[4], averaging);
    }
    SAPWOOD_AVX2 void sapwood_find_slots_avx2(
        const double *grids, const double *row, Py_ssize_t features, Py_ssize_t count,
        Py_ssize_t size, double *slots, double **found)
    {
        const __m256d zero = _mm256_setzero_pd(), last = _mm256_set1_pd((double)count - 0.5);
        const __m256d missing = _mm256_set1_pd((double)count);
        const __m256i bytes = _mm256_set1_epi64x(8 * size);
        const __m256i of_four = _mm256_set1_epi64x(32 * size * (count + 1));
        __m256i start = _mm256_set_epi64x(
            24 * size * (count + 1), 16 * size * (count + 1), 8 * size * (count + 1), 0);
        Py_ssize_t i;
        start = _mm256_add_epi64(start, _mm256_set1_epi64x((long long)(size_t)slots));
        for (i = 0; i + 4 <= features; i += 4, grids += 16) {
            __m256d a = _mm256_loadu_pd(grids), b = _mm256_loadu_pd(grids + 4);
            __m256d c = _mm256_loadu_pd(grids + 8), d = _mm256_loadu_pd(grids + 12);
            __m256d x = _mm256_loadu_pd(row + i), low, inverse, place, is_missing, is_laid;
            __m256i at;
            a = _mm256_unpacklo_pd(a, b);
            c = _mm256_unpacklo_pd(c, d);
            low = _mm256_permute2f128_pd(a, c, 0x20);
            inverse = _mm256_permute2f128_pd(a, c, 0x31);
            is_missing = _mm256_cmp_pd(x, x, _CMP_UNORD_Q);
            is_laid = _mm256_or_pd(is_missing, _mm256_cmp_pd(inverse, zero, _CMP_GT_OQ));
            place = _mm256_mul_pd(_mm256_sub_pd(x, low), inverse);
            place = _mm256_min_pd(_mm256_max_pd(place, zero), last);
            place = _mm256_blendv_pd(place, missing, is_missing);
            at = _mm256_cvtepi32_epi64(_mm256_cvttpd_epi32(place));
            at = _mm256_add_epi64(_mm256_mul_epu32(at, bytes), start);
            at = _mm256_and_si256(at, _mm256_castpd_si256(is_laid));
            _mm256_storeu_si256((__m256i *)(found + i), at);
            start = _mm256_add_epi64(start, of_four);
        }
        for (; i < features; i++, grids += 4)
            found[i] = sapwood_slot(grids, row[i], count, size, slots + size * (count + 1) * i);
    }
    #define SAPWOOD_BY_VECTORS(step, arguments) \
        (__builtin_cpu_supports("avx2") ? step##_avx2 arguments : step##_any arguments)
    #else
    #define SAPWOOD_BY_VECTORS(step, arguments) step##_any arguments
    #endif
    #define sapwood_standardise(c, s, v, r, stride, n, most, reach, z) \
        SAPWOOD_BY_VECTORS(sapwood_standardise, (c, s, v, r, stride, n, most, reach, z))
    #define sapwood_powers(errors, averaging, p) \
        SAPWOOD_BY_VECTORS(sapwood_powers, (errors, averaging, p))
    #define sapwood_mix(e, p, averaging, low, high) \
        SAPWOOD_BY_VECTORS(sapwood_mix, (e, p, averaging, low, high))
    #define sapwood_find_slots(g, row, n, count, size, slots, found) \
        SAPWOOD_BY_VECTORS(sapwood_find_slots, (g, row, n, count, size, slots, found))
    """
    bint standardise_values "sapwood_standardise"(
        const double* centres, const double* scales, const double* values, const double* ranges,
        Py_ssize_t stride, Py_ssize_t features, double credible, double reach, double* z
    ) noexcept nogil
    void find_powers "sapwood_powers"(
        const double* errors, bint averaging, double* powers
    ) noexcept nogil
    double mix_within "sapwood_mix"(
        double* experts, const double* powers, bint averaging, double lowest, double highest
    ) noexcept nogil
    void find_slots_of_numbers "sapwood_find_slots"(
        const double* grids, const double* row, Py_ssize_t features, Py_ssize_t count,
        Py_ssize_t size, double* slots, double** found
    ) noexcept nogil
    # For tests: the same for any processor.
    bint standardise_plainly "sapwood_standardise_any"(
        const double* centres, const double* scales, const double* values, const double* ranges,
        Py_ssize_t stride, Py_ssize_t features, double credible, double reach, double* z
    ) noexcept nogil
    void find_powers_plainly "sapwood_powers_any"(
        const double* errors, bint averaging, double* powers
    ) noexcept nogil
    double mix_plainly "sapwood_mix_any"(
        double* experts, const double* powers, bint averaging, double lowest, double highest
    ) noexcept nogil
    void find_slots_plainly "sapwood_find_slots_any"(
        const double* grids, const double* row, Py_ssize_t features, Py_ssize_t count,
        Py_ssize_t size, double* slots, double** found
    ) noexcept nogil
    double* slot_in "sapwood_slot"(
        const double* grid, double x, Py_ssize_t count, Py_ssize_t size, double* slots
    ) noexcept nogil
    double power_of "sapwood_power"(double times_least) noexcept nogil
