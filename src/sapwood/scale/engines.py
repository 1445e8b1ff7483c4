"""Engines, which run functions in workers. Each is a Python Executor, or is wrapped as one.

The rounds use nothing but `submit` and futures. Any other Executor, such as that of mpi4py, can be
passed as it is.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from sapwood.merge.errors import MergeError
from sapwood.scale.processes import ProcessExecutor
from sapwood.streams.schema import nearest

__all__ = ["ENGINES", "Engine", "RayExecutor", "engine"]

ENGINES = ("processes", "threads", "dask", "ray")
ANSWER_SECONDS = 4  # within which a scheduler has to answer


class Engine:
    """An executor that is opened again when its workers are lost."""

    def __init__(self, open: Callable[[], Executor], name: str = "the executor") -> None:
        self._open, self.name = open, name
        self._executor: Executor | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Let a worker call a function."""
        if self._executor is None:
            self._executor = self._open()
        return self._executor.submit(function, *arguments)

    def renew(self) -> None:
        """Let go of workers that are broken; others are started when something is submitted."""
        self.close()

    def close(self) -> None:
        """Let go of all workers."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)


class _Lent(Engine):
    """An executor of the caller, who has to close it and to replace lost workers."""

    def renew(self) -> None:
        """Do nothing: it may have recovered by itself."""

    def close(self) -> None:
        """Leave it open."""


@contextmanager
def engine(spec: str | Executor, workers: int) -> Iterator[Engine]:
    """Open an engine by its name.

    - `spec`: "processes" or "threads" of this machine; "dask" or "ray", a local cluster, or one by
      its address, as ``dask://host:8786`` and ``ray://host:10001``; or any executor.
    - Raises MergeError if there is no such engine.
    - Raises ModuleNotFoundError if Dask or Ray is not installed.
    """
    if isinstance(spec, Executor):
        yield _Lent(lambda: spec, type(spec).__name__)
        return
    made = Engine(_opener(spec, workers), spec)
    try:
        yield made
    finally:
        made.close()


def _opener(spec: str, workers: int) -> Callable[[], Executor]:
    name, _, address = spec.partition("://")
    if name not in ENGINES or (address and name in ("processes", "threads")):
        raise MergeError(f"{spec} is no engine: {nearest(name, ENGINES)}")
    if name == "threads":
        return lambda: ThreadPoolExecutor(workers)
    if name == "processes":
        return lambda: ProcessExecutor(workers)
    if name == "dask":
        return lambda: _dask(address, workers)
    return lambda: RayExecutor(address, workers)


# -- Dask -----------------------------------------------------------------------------------------


class _DaskExecutor(Executor):
    """The executor of a Dask client, which is closed with it."""

    def __init__(self, address: str, workers: int) -> None:
        from distributed import Client, LocalCluster

        self._cluster = None
        if not address:
            self._cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            )
        try:
            self._client = (
                Client(f"tcp://{address}", timeout=ANSWER_SECONDS)
                if self._cluster is None
                else Client(self._cluster)
            )
        except OSError as error:
            place = f"dask://{address}" if address else "dask"
            raise MergeError(
                f"--engine {place}: no scheduler answers ({error}); start one by `dask scheduler`, "
                "or check host and port"
            ) from error
        self._inner = self._client.get_executor(pure=False)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Let a worker call a function; a lost worker's call is done again by another."""
        return self._inner.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close the client, and the cluster if it is our own."""
        self._inner.shutdown(wait=wait)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _dask(address: str, workers: int) -> Executor:
    return _DaskExecutor(address, workers)


# -- Ray ------------------------------------------------------------------------------------------


class RayExecutor(Executor):
    """Ray's tasks as an Executor of Python.

    - `address`: host and port of a cluster; a local one is started if it is empty.
    """

    def __init__(self, address: str = "", workers: int = 2) -> None:
        import ray

        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started and address:
            try:
                ray.init(f"ray://{address}", log_to_driver=False)
            except (ConnectionError, ValueError) as error:
                raise MergeError(
                    f"--engine ray://{address}: no cluster answers ({error}); check host and port"
                ) from error
        elif self._started:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        self._remotes: dict[Any, Any] = {}

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Let a worker call a function; Ray does it again if the worker is lost."""
        if function not in self._remotes:
            self._remotes[function] = self._ray.remote(max_retries=3)(function)
        return self._remotes[function].remote(*arguments, **named).future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of Ray, if it was started here."""
        if self._started and self._ray.is_initialized():
            self._ray.shutdown()
