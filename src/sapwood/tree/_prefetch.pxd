"""A hint to the processor; compilers that have no word for it leave it out."""

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define sapwood_prefetch_for_write(address) __builtin_prefetch((address), 1, 3)
    #else
    #define sapwood_prefetch_for_write(address) ((void)(address))
    #endif
    """
    void prefetch_for_write "sapwood_prefetch_for_write" (const void* address) noexcept nogil
