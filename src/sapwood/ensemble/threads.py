"""Threads that all ensembles of a process share."""

import os
from concurrent.futures import ThreadPoolExecutor

__all__ = ["cores", "shared_pool"]

_pools: dict[int, ThreadPoolExecutor] = {}


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared_pool(threads: int) -> tuple[ThreadPoolExecutor, int] | None:
    """Return what runs functions in other threads, and how many work with the caller among them.

    None if the caller is to do all by itself.
    """
    if threads < 2:
        return None
    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads - 1, thread_name_prefix="sapwood")
    return _pools[threads], threads


if hasattr(os, "register_at_fork"):
    # The threads of a process are not there in its child.
    os.register_at_fork(after_in_child=_pools.clear)
