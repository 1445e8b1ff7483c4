"""The one clock of all benchmarks."""

from collections.abc import Callable
from time import thread_time_ns

__all__ = ["best_seconds", "nanoseconds"]

LONG_ENOUGH = 20_000_000


def best_seconds(action: Callable[[], object], repeats: int = 7) -> float:
    """Return the CPU time of the calling thread that one call takes: the best of several.

    What is too short for the clock is called in a loop, long enough to be measured to a part in
    a thousand. CPU time and the best, because other work on the machine only ever adds.

    Parameters
    ----------
    action : callable
        What is measured.
    repeats : int
        How often it is measured.
    """
    calls = 1
    while (taken := nanoseconds(action, calls)) < LONG_ENOUGH:
        calls *= 2
    return min(taken, *(nanoseconds(action, calls) for _ in range(repeats - 1))) / calls / 1e9


def nanoseconds(action: Callable[[], object], calls: int = 1) -> int:
    """Return the CPU time of the calling thread that some calls take, measured once.

    Parameters
    ----------
    action : callable
        What is measured.
    calls : int
        How often it is called.
    """
    start = thread_time_ns()
    for _ in range(calls):
        action()
    return thread_time_ns() - start
