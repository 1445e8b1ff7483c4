"""Measuring in a process of its own, which may die or take too long without harm to the rest."""

import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["records_apart"]

Work = Callable[..., Iterator[Any]]
"""Yields what it finds; it has to be importable, as its process imports it."""


def records_apart(
    work: Work, arguments: tuple[Any, ...], patience: float
) -> tuple[list[Any], str | None]:
    """Return what was found in a new process, and why there is no more, should it be incomplete.

    Parameters
    ----------
    work : callable
        What to do.
    arguments : tuple
        What it is given.
    patience : float
        The seconds after which the process is stopped.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, work, arguments), daemon=True)
    process.start()
    sender.close()
    found: list[Any] = []
    end = time.monotonic() + patience
    try:
        while receiver.poll(max(0.0, end - time.monotonic())):
            record = receiver.recv()
            if record is None:
                return found, None
            found.append(record)
        why = f"no result after {patience:.0f} seconds"
    except EOFError:
        process.join()
        why = f"the process has ended with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
        receiver.close()
    return found, why


def _send(sender: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    for record in work(*arguments):
        sender.send(record)
    sender.send(None)
