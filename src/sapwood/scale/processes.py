"""Processes of this machine as an Executor, in which a worker that dies takes nothing with it.

Each worker has a pipe of its own, and a thread of this process that feeds it: no lock or queue is
shared among workers, so one that is killed, at whatever moment, leaves nothing locked and nothing
half-read for others. Its call fails, and another takes its place. (Python's own pool may wait for
ever for a worker that it starts while it notices that another one has died.) Workers end with the
process that started them, whatever they are doing.
"""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from traceback import format_exc
from typing import Any

__all__ = ["ProcessExecutor", "WorkerLostError"]

Call = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# Spawned, as a copy of a process with threads may wait for them for ever.
_context = get_context("spawn")
_starting = threading.Lock()


class WorkerLostError(BrokenExecutor):
    """A worker has died before it had an answer."""


class ProcessExecutor(Executor):
    """Calls functions in processes, which are started with the first call."""

    def __init__(self, workers: int, prepare: Callable[[], None] | None = None) -> None:
        self._workers, self._prepare = workers, prepare
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._feeders: list[threading.Thread] = []
        self._hired: set[_Worker] = set()
        self._is_shut = self._is_killed = False
        self._changing = threading.Lock()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that there are."""
        return tuple(worker.pid for worker in tuple(self._hired))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Let a worker call a function.

        - Raises RuntimeError if the executor was shut down.
        """
        with self._changing:
            if self._is_shut:
                raise RuntimeError("the executor was shut down")
            future: Future[Any] = Future()
            self._calls.put((future, function, arguments, named))
            while len(self._feeders) < self._workers:
                feeder = threading.Thread(target=self._feed, daemon=True)
                self._feeders.append(feeder)
                feeder.start()
            return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all workers, once what was submitted is done."""
        with self._changing:
            if not self._is_shut:
                self._is_shut = True
                if cancel_futures:
                    self._cancel_calls()
                for _ in self._feeders:
                    self._calls.put(None)
        if wait:
            for feeder in self._feeders:
                feeder.join()

    def _cancel_calls(self) -> None:
        """Cancel what no worker has begun; one may take the last of them meanwhile."""
        with suppress(Empty):
            while (call := self._calls.get_nowait()) is not None:
                call[0].cancel()

    def kill_workers(self) -> None:
        """End all workers at once, whatever they are doing; nothing more is answered."""
        self.shutdown(wait=False, cancel_futures=True)
        self._is_killed = True
        for worker in tuple(self._hired):
            worker.kill()
        self.shutdown(wait=True)

    # -- in a thread for each worker --------------------------------------------------------------

    def _feed(self) -> None:
        """Hand calls to a worker, and to another one if that is lost, until there are no more."""
        worker: _Worker | None = None
        with suppress(BaseException):  # hiring is tried again with the first call, which reports it
            worker = self._hire()
        while (call := self._calls.get()) is not None:
            worker = self._answer(call, worker)
            del call  # which may be large
        self._let_go(worker)

    def _answer(self, call: Call, worker: "_Worker | None") -> "_Worker | None":
        """Have a call answered; return the worker, None if it was lost."""
        future, *task = call
        if not future.set_running_or_notify_cancel():
            return worker
        try:
            worker = worker or self._hire()
            is_good, answer = worker.ask(tuple(task))
        except (EOFError, OSError) as error:  # as its end of the pipe was closed
            is_good, answer = False, WorkerLostError("a worker has died")
            answer.__cause__ = error
            self._let_go(worker)
            worker = None
        except BaseException as error:  # what cannot be sent
            is_good, answer = False, error
        if is_good:
            future.set_result(answer)
        else:
            future.set_exception(answer)
        return worker

    def _hire(self) -> "_Worker":
        worker = _Worker(self._prepare)
        self._hired.add(worker)
        if self._is_killed:
            worker.kill()
        return worker

    def _let_go(self, worker: "_Worker | None") -> None:
        if worker is not None:
            self._hired.discard(worker)
            worker.end()


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        with _starting:
            self._pipe, other_end = _context.Pipe()
            self._process = _context.Process(target=_work, args=(other_end, prepare), daemon=True)
            try:
                self._process.start()
            finally:
                other_end.close()  # so that the pipe ends with the process
        self.pid = self._process.pid or 0

    def ask(self, task: tuple[Any, ...]) -> tuple[bool, Any]:
        """Return whether a call succeeded, and what it gave or raised."""
        self._pipe.send(task)
        is_good, answer = self._pipe.recv()
        return is_good, answer

    def kill(self) -> None:
        """End it, even during a call; the caller that waits for the answer gets an error."""
        self._process.kill()

    def end(self) -> None:
        """Let it end."""
        self._pipe.close()
        self._process.join()


# -- in a worker ----------------------------------------------------------------------------------


def _work(pipe: Connection, prepare: Callable[[], None] | None) -> None:
    """Answer calls until the pipe ends, as it also does with the process at its other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the submitting process decides
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()
    while True:
        try:
            function, arguments, named = pipe.recv()
        except EOFError:
            return
        except BaseException as error:  # what cannot be read here
            answer = (False, _with_traceback(error))
        else:
            try:
                answer = (True, function(*arguments, **named))
            except BaseException as error:
                answer = (False, _with_traceback(error))
        try:
            pipe.send(answer)
        except OSError:
            os._exit(1)  # nobody is there who waits for it
        except BaseException as error:  # what cannot be sent
            pipe.send(
                (False, _with_traceback(RuntimeError(f"a worker's answer cannot be sent: {error}")))
            )


def _leave_with_parent() -> None:
    """Leave in the midst of a call when the process that submitted it is no more."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _with_traceback(error: BaseException) -> BaseException:
    """Return an error with a note of where it was raised."""
    error.add_note(f"in a worker:\n{format_exc()}")
    return error
