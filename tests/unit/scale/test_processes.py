"""Workers that are killed at any moment: their calls fail, others do not, and nobody waits."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

from cases import PATIENCE
from sapwood.scale.processes import ProcessExecutor, WorkerLostError


@pytest.fixture
def executor():
    made = ProcessExecutor(2)
    yield made
    made.shutdown()


def test_answers_are_those_of_the_calls(executor):
    futures = [executor.submit(divmod, place, 7) for place in range(40)]
    assert [future.result(PATIENCE) for future in futures] == [divmod(n, 7) for n in range(40)]
    assert len(executor.pids) == 2
    assert executor.submit(sorted, [2, 3, 1], reverse=True).result(PATIENCE) == [3, 2, 1]


def test_an_error_comes_back_with_where_it_was_raised(executor):
    with pytest.raises(ValueError, match="invalid literal") as caught:
        executor.submit(int, "x").result(PATIENCE)
    assert "in a worker:\nTraceback" in caught.value.__notes__[0]
    with pytest.raises(SystemExit):  # which does not end the worker
        executor.submit(sys.exit, 3).result(PATIENCE)
    assert executor.submit(abs, -1).result(PATIENCE) == 1


def test_what_cannot_be_sent_is_told_and_harms_nothing(executor):
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        executor.submit(lambda: 1).result(PATIENCE)
    with pytest.raises(RuntimeError, match="a worker's answer cannot be sent"):
        executor.submit(memoryview, b"x").result(PATIENCE)
    assert executor.submit(abs, -1).result(PATIENCE) == 1


def test_a_worker_that_dies_fails_its_call_only(executor):
    died = executor.submit(signal.raise_signal, signal.SIGKILL)
    others = [executor.submit(abs, -place) for place in range(20)]
    with pytest.raises(WorkerLostError, match="a worker has died"):
        died.result(PATIENCE)
    assert [future.result(PATIENCE) for future in others] == list(range(20))


def test_workers_that_are_killed_at_any_moment_leave_nobody_waiting():
    """Also while they start, read what is large, or answer it."""
    executor, is_over = ProcessExecutor(2), threading.Event()
    draw = np.random.default_rng(3)
    large = b"x" * 300_000  # more than a pipe holds

    def strike():
        while not is_over.wait(draw.random() * 0.1):
            for pid in executor.pids[:1]:
                os.kill(pid, signal.SIGKILL)

    striker = threading.Thread(target=strike)
    striker.start()
    answers, lost = 0, 0
    for _ in range(15):
        for future in [executor.submit(bytes.upper, large) for _ in range(4)]:
            try:
                assert future.result(PATIENCE) == b"X" * 300_000
                answers += 1
            except WorkerLostError:
                lost += 1
    is_over.set()
    striker.join()
    assert answers + lost == 60
    executor.shutdown()
    assert executor.pids == ()


def test_what_is_shut_down_does_what_was_submitted_or_cancels_it():
    executor = ProcessExecutor(1)
    futures = [executor.submit(abs, -place) for place in range(5)]
    executor.shutdown()
    assert [future.result() for future in futures] == list(range(5))
    with pytest.raises(RuntimeError, match="was shut down"):
        executor.submit(abs, -1)
    executor = ProcessExecutor(1)
    running = executor.submit(time.sleep, 0.2)
    while not running.running():
        time.sleep(0.001)
    waiting = executor.submit(abs, -1)
    executor.shutdown(cancel_futures=True)
    assert running.result() is None
    with pytest.raises(CancelledError):
        waiting.result()


def test_workers_are_killed_in_the_midst_of_calls():
    executor = ProcessExecutor(2)
    running = [executor.submit(time.sleep, 2 * PATIENCE) for _ in range(2)]
    waiting = executor.submit(abs, -1)
    while not all(future.running() for future in running):
        time.sleep(0.001)
    executor.kill_workers()
    assert executor.pids == ()
    for future in running:
        with pytest.raises(WorkerLostError):
            future.result(PATIENCE)
    with pytest.raises(CancelledError):
        waiting.result(PATIENCE)
    with pytest.raises(RuntimeError, match="was shut down"):
        executor.submit(abs, -1)


def test_workers_that_are_yet_to_start_are_killed_too():
    executor = ProcessExecutor(2)
    futures = [executor.submit(time.sleep, 2 * PATIENCE) for _ in range(2)]
    executor.kill_workers()
    assert executor.pids == ()
    for future in futures:
        with pytest.raises((WorkerLostError, CancelledError)):
            future.result(PATIENCE)


def test_workers_are_prepared_before_their_first_call():
    executor = ProcessExecutor(1, gc.disable)
    assert executor.submit(gc.isenabled).result(PATIENCE) is False
    executor.shutdown()
    assert gc.isenabled()


@pytest.mark.parametrize("call", ["os.getpid", "time.sleep, 1e6"], ids=["idle", "busy"])
def test_workers_end_with_the_process_that_has_made_them(call):
    program = f"""
import os, signal, time
from sapwood.scale.processes import ProcessExecutor
if __name__ == "__main__":
    executor = ProcessExecutor(1)
    print(executor.submit(os.getpid).result(), flush=True)
    future = executor.submit({call})
    while not (future.running() or future.done()):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    # A worker has the output of its parent: it ends only when both are gone.
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert int(done.stdout) > 0
