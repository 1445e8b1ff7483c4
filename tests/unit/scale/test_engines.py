"""The same job on Dask and on Ray, on real local clusters of two workers."""

import os
import secrets
import signal
import subprocess
import sys

import pyarrow.parquet
import pytest

from cases import PATIENCE
from sapwood.merge.errors import MergeError
from sapwood.scale import Rounds, train
from sapwood.scale.engines import Engine, engine
from sapwood.scale.worker import learn_shard
from scale_cases import content, small_tree, table, trained

JOB = {"read_options": {"target": "y"}, "first": 2_000}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "all.parquet"
    pyarrow.parquet.write_table(table(), path, row_group_size=1_000)
    return str(path)


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """Ray, with a token for its clusters here; else it would leave one in somebody's home."""
    path = tmp_path_factory.mktemp("ray") / "token"
    path.write_text(secrets.token_hex(32))
    with pytest.MonkeyPatch.context() as patched:  # which Ray reads once
        patched.setenv("RAY_AUTH_TOKEN_PATH", str(path))
        yield pytest.importorskip("ray", reason="Ray is not installed")


class Struck(Engine):
    """Kills a worker when the first shard is under way."""

    def __init__(self, open, name, worker):
        super().__init__(open, name)
        self.worker, self.killed = worker, []

    def submit(self, function, *arguments):
        future = super().submit(function, *arguments)
        if function is learn_shard and not self.killed:
            self.killed.append(self.worker(self._executor))
            os.kill(self.killed[0], signal.SIGKILL)
        return future


def struck_rounds(spec, rows, worker):
    with engine(spec, 2) as made:
        struck = Struck(made._open, spec, worker)
        try:
            job = {"workers": 2, "engine": struck, **JOB}
            found = Rounds(small_tree(), rows, **job).run()
        finally:
            struck.close()
    assert struck.killed
    return found


@pytest.mark.filterwarnings("ignore")  # of Dask's own, when clusters end
def test_dask_gives_the_same_model(rows):
    pytest.importorskip("distributed", reason="Dask is not installed")
    expected = content(trained(rows, workers=2))
    found = train(small_tree(), rows, workers=2, engine="dask", **JOB)
    assert content(found) == expected


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_dask_with_a_worker_that_is_killed(rows):
    pytest.importorskip("distributed", reason="Dask is not installed")

    def worker(executor):
        return next(iter(executor._client.run(os.getpid).values()))

    assert content(struck_rounds("dask", rows, worker)) == content(trained(rows, workers=2))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_model_with_a_worker_that_is_killed(rows, ray):
    expected = content(trained(rows, workers=2))
    found = train(small_tree(), rows, workers=2, engine="ray", **JOB)
    assert content(found) == expected

    def worker(executor):
        return ray.get(ray.remote(lambda: os.getpid()).remote())  # noqa: PLW0108 - as Ray asks for

    assert content(struck_rounds("ray", rows, worker)) == expected


# -- a driver that is killed ----------------------------------------------------------------------

DRIVER = """
import os, signal, sys
from sapwood import HoeffdingTreeRegressor
from sapwood.scale import Rounds
from sapwood.scale.engines import Engine, engine
from sapwood.scale.worker import learn_shard


class Striking(Engine):
    def submit(self, function, *arguments):
        future = super().submit(function, *arguments)
        if function is learn_shard and job.trained.rounds == 1:
            os.kill(os.getpid(), signal.SIGKILL)  # while a worker learns the second round
        return future


if __name__ == "__main__":
    spec, rows, checkpoint = sys.argv[1:]
    with engine(spec, 2) as made:
        job = Rounds(
            HoeffdingTreeRegressor(grace_period=100), rows, workers=2, first=2_000,
            engine=Striking(made._open, spec), read_options={"target": "y"}, checkpoint=checkpoint,
            every=0.0,
        )
        job.run()
"""


def driver_is_killed(spec, rows, folder):
    """Let a driver in a process of its own kill itself in the midst; return its checkpoint."""
    script, checkpoint = folder / "driver.py", folder / "checkpoint"
    script.write_text(DRIVER)
    ended = subprocess.run(
        [sys.executable, str(script), spec, rows, str(checkpoint)],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    return checkpoint


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_dask_with_a_driver_that_is_killed(rows, tmp_path):
    """The cluster outlives the driver; another one goes on with it."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        spec = f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"
        checkpoint = driver_is_killed(spec, rows, tmp_path)
        rounds = []
        found = train(
            small_tree(),
            rows,
            workers=2,
            engine=spec,
            checkpoint=checkpoint,
            listener=lambda report: rounds.append(report.round),
            **JOB,
        )
    assert rounds[0] == 1
    assert content(found) == content(trained(rows, workers=2))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("ray")
def test_ray_with_a_driver_that_is_killed(rows, tmp_path):
    checkpoint = driver_is_killed("ray", rows, tmp_path)
    rounds = []
    found = train(
        small_tree(),
        rows,
        workers=2,
        engine="ray",
        checkpoint=checkpoint,
        listener=lambda report: rounds.append(report.round),
        **JOB,
    )
    assert rounds[0] == 1
    assert content(found) == content(trained(rows, workers=2))


def test_a_dask_scheduler_that_does_not_answer_is_reported_soon(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    client, waited = distributed.Client, []

    def recorded(address, timeout):
        waited.append(timeout)
        return client(address, timeout=0.2)

    monkeypatch.setattr(distributed, "Client", recorded)
    with (
        engine("dask://127.0.0.1:1", 2) as opened,
        pytest.raises(MergeError, match=r"--engine dask://127\.0\.0\.1:1: no scheduler answers"),
    ):
        opened.submit(os.getpid)
    assert 0 < waited[0] <= 5  # by default Dask waits for 30 seconds and longer
