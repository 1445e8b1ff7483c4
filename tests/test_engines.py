"""The same job on Dask and on Ray, on real local clusters of two workers."""

import os
import secrets
import signal

import pyarrow.parquet
import pytest

from sapwood.scale import Rounds, train
from sapwood.scale.engines import Engine, engine
from sapwood.scale.worker import learn_shard
from test_scale import content, small_tree, table, trained

JOB = {"wishes": {"target": "y"}, "first": 2_000}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "all.parquet"
    pyarrow.parquet.write_table(table(), path, row_group_size=1_000)
    return str(path)


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
def test_ray_gives_the_same_model_with_a_worker_that_is_killed(rows, tmp_path, monkeypatch):
    # A token for this cluster alone; else Ray would leave one in the home of whoever tests.
    (tmp_path / "token").write_text(secrets.token_hex(32))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    expected = content(trained(rows, workers=2))
    found = train(small_tree(), rows, workers=2, engine="ray", **JOB)
    assert content(found) == expected

    def worker(executor):
        return ray.get(ray.remote(lambda: os.getpid()).remote())  # noqa: PLW0108 - as Ray asks for

    assert content(struck_rounds("ray", rows, worker)) == expected
