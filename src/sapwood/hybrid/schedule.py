"""When a batch learner is fitted, and from which row on the new model predicts.

Both are functions of the number of rows that were learned. How long a fit takes changes nothing: a
model that is ready before its row waits for it, and where one is not ready yet, learning waits.
"""

from typing import NamedTuple, Self

from sapwood import validation

__all__ = ["Schedule"]

LEAST_LAG = 20
LAG_SHARE = 40
MOST_ROWS = 2**31


class Schedule(NamedTuple):
    """When fits start, and when they are used.

    Attributes
    ----------
    refit : float, int or None
        A share: a fit starts when there are so many rows more than at the last one, as a share of
        them or of the window. A whole number: every so many rows. None: never.
    min_rows : int
        The first fit starts after so many rows, and there are at least as many between two.
    lag : int or None
        A model is used so many rows after its fit started; by default a fortieth of the rows that
        it is fitted on, at least 20.
    window : int
        How many rows a fit has at most.

    Examples
    --------
    >>> schedule = Schedule.checked(refit=0.25, min_rows=200, lag=None, window=20_000)
    >>> schedule.start_after(0), schedule.start_after(1000), schedule.start_after(50_000)
    (200, 1250, 55000)
    >>> schedule.used_from(200), schedule.used_from(50_000)
    (220, 50500)
    """

    refit: float | int | None
    min_rows: int
    lag: int | None
    window: int

    @classmethod
    def checked(cls, refit: float | None, min_rows: int, lag: int | None, window: int) -> Self:
        """Return the schedule of parameters, or raise ValueError for a bad one."""
        if refit is None or isinstance(refit, bool):
            when: float | int | None = None
            if refit is not None:
                raise ValueError(f"refit = {refit}: a share, a number of rows or None is expected")
        elif isinstance(refit, int):
            when = validation.whole(refit, "refit", 1, MOST_ROWS)
        else:
            when = validation.between(refit, "refit", 0.01, 10.0)
        least = validation.whole(min_rows, "min_rows", 20, MOST_ROWS)
        if isinstance(when, int) and when < least:
            raise ValueError(
                f"refit = {when}: at least min_rows = {least} is expected; give a smaller min_rows"
            )
        return cls(
            when,
            least,
            None if lag is None else validation.whole(lag, "lag", 0, MOST_ROWS),
            validation.whole(window, "window", 100, MOST_ROWS),
        )

    def start_after(self, last: int) -> int | None:
        """Return at how many rows the next fit starts, after one that started at `last`."""
        if self.refit is None:
            return None
        step = (
            self.refit
            if isinstance(self.refit, int)
            else -int(-self.refit * min(last, self.window) // 1)
        )
        return max(last + max(step, self.min_rows), self.used_from(last) if last else 0)

    def used_from(self, start: int) -> int:
        """Return from how many rows on the model predicts whose fit started at `start`."""
        if self.lag is not None:
            return start + self.lag
        return start + max(LEAST_LAG, min(start, self.window) // LAG_SHARE)
