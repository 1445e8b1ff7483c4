"""The turn of a thread in a stage: compiled, so that no interruption leaves its lock held."""

import threading

__all__ = ["Turn"]


cdef class Turn:
    """Lets no other thread learn, save or copy meanwhile, in a ``with`` statement.

    A signal is raised between two instructions of Python, of which there are none in here.

    Attributes
    ----------
    unfinished : tuple of two callables, or None
        What an interruption may leave undone: that which finishes it, and whether that is due.

    Examples
    --------
    >>> turn = Turn()
    >>> done = []
    >>> turn.unfinished = (lambda: done.append("row"), lambda: True)
    >>> with turn:
    ...     print(done, turn.unfinished)
    ['row'] None
    """

    cdef object acquire, release
    cdef public object unfinished

    def __init__(self):
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        self.unfinished = None

    def __enter__(self):
        self.acquire()
        if self.unfinished is not None:
            try:
                self.settle()
            except BaseException:
                self.release()
                raise

    def __exit__(self, kind, error, traceback):
        self.release()

    cpdef settle(self):
        """Finish what an interruption has left undone, if it is due."""
        if self.unfinished is None:
            return
        finish, is_due = self.unfinished
        if is_due():
            finish()
        self.unfinished = None
