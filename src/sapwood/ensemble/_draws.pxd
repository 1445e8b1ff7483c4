"""Weights drawn for rows by counting: the same for a tree and a row, whatever else happens.

A draw is splitmix64 at a place in the sequence that a tree's key starts: G. L. Steele, D. Lea and
C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from libc.stdint cimport uint64_t

cdef enum:
    MOST_COPIES = 48  # of a row; a Poisson variable of mean 8 exceeds it once in 10**22 rows


cdef inline uint64_t scrambled(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline uint64_t key_of(uint64_t seed, uint64_t number) noexcept nogil:
    """Where the sequence of a tree starts."""
    return scrambled(scrambled(seed + <uint64_t>0x9E3779B97F4A7C15ULL) + number)


cdef inline double copies_of(
    uint64_t key, uint64_t row, const uint64_t* thresholds
) noexcept nogil:
    """How often a row counts: the number of thresholds that its draw reaches."""
    cdef uint64_t draw = scrambled(key + (row + 1) * <uint64_t>0x9E3779B97F4A7C15ULL)
    cdef Py_ssize_t copies = 0
    while copies < MOST_COPIES and draw >= thresholds[copies]:
        copies += 1
    return <double>copies
