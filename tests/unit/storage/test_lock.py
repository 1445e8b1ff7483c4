"""Two runs on one checkpoint: the second says at once that the first holds it."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from cli_cases import assert_fails, invoke, rows_of, run, start, stop, wait_until, write_csv
from sapwood.evaluate.checkpoint import CheckpointError, CheckpointFile
from sapwood.storage import lock
from sapwood.storage.lock import Held, hold

COMMAND = ("evaluate", "-", "-t", "y", "--checkpoint", "C", "--every", "1000")
FILE_COMMAND = ("evaluate", "a.csv", "-t", "y", "--checkpoint", "C")

HOLDER = """
import sys
from sapwood.storage.lock import hold
with hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path):
    """Start a process that holds a lock until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", rows_of(3000))
    return tmp_path


def test_another_process_is_told_who_holds_the_lock(tmp_path) -> None:
    path = str(tmp_path / "lock")
    process = holder(path)
    with pytest.raises(Held) as caught, hold(path):
        pass
    assert caught.value.process == process.pid
    process.communicate(b"\n")
    assert not os.path.exists(path)
    with hold(path) as is_sure:
        assert is_sure
        assert int((tmp_path / "lock").read_text()) == os.getpid()
    assert os.listdir(tmp_path) == []


def test_a_lock_dies_with_its_process(tmp_path) -> None:
    path = str(tmp_path / "lock")
    process = holder(path)
    process.kill()
    process.communicate()
    assert os.path.exists(path)  # it could not remove it any more
    with hold(path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_removed_while_it_is_asked_for_is_asked_for_again(
    tmp_path, monkeypatch
) -> None:
    """Its holder ends between the opening and the locking of the file."""
    path = str(tmp_path / "lock")
    real, calls = lock._lock, []

    def late(handle):
        calls.append(handle)
        if len(calls) == 1:
            os.unlink(path)
        return real(handle)

    monkeypatch.setattr(lock, "_lock", late)
    with hold(path):
        assert len(calls) == 2
        with pytest.raises(Held), hold(path):
            pass


def test_a_system_that_cannot_lock_says_so(folder, monkeypatch) -> None:
    def refuse(handle, flags):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with hold("lock") as is_sure:
        assert not is_sure
    ended = invoke(*FILE_COMMAND)
    assert ended.code == 0
    assert "sapwood: this system cannot lock C: let no other run use it" in ended.stderr


@pytest.mark.parametrize("content", [b"# a lock file of another program\n", b"1" * 21])
def test_somebody_elses_file_is_no_lock(folder, content) -> None:
    (folder / "C.lock").write_bytes(content)
    assert_fails(invoke(*FILE_COMMAND), "C.lock: is no lock", "rename it")
    assert (folder / "C.lock").read_bytes() == content
    assert not (folder / "C").exists()


def test_a_link_is_no_lock(folder) -> None:
    (folder / "precious").write_bytes(b"")
    os.symlink("precious", "C.lock")
    assert_fails(invoke(*FILE_COMMAND), "C.lock: too many levels of symbolic links")


def test_a_checkpoint_is_held_once(tmp_path) -> None:
    path = tmp_path / "C"
    os.symlink(path, tmp_path / "link")
    with CheckpointFile(path).hold():
        for name in (path, tmp_path / "link"):
            words = f"is in use by another run, process {os.getpid()}: wait"
            with pytest.raises(CheckpointError, match=words), CheckpointFile(name).hold():
                pass
    with CheckpointFile(path).hold():
        pass


def test_the_second_of_two_runs_is_refused_at_once(folder) -> None:
    rows = (folder / "a.csv").read_bytes().splitlines(keepends=True)
    first = start(*COMMAND, "--predictions", "p.csv", cwd=folder)
    first.stdin.write(b"".join(rows[:2001]))
    first.stdin.flush()
    assert wait_until((folder / "C").exists, first)
    for command in (COMMAND, (*COMMAND, "--predictions", "p.csv"), FILE_COMMAND):
        ended = run(*command, cwd=folder, input=b"".join(rows))
        assert_fails(ended, f"C is in use by another run, process {first.pid}", "wait for its end")
    out, err = first.communicate(b"".join(rows[2001:]))
    assert first.returncode == 0, err
    assert b"rows: 3,000 read, 3,000 predicted, 3,000 learned" in out
    assert len((folder / "p.csv").read_bytes().splitlines()) == 3001
    assert not (folder / "C.lock").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_was_ended_by_a_signal_holds_nothing(folder, number) -> None:
    rows = (folder / "a.csv").read_bytes().splitlines(keepends=True)
    first = start(*COMMAND, cwd=folder)
    first.stdin.write(b"".join(rows[:2001]))
    first.stdin.flush()
    assert wait_until((folder / "C").exists, first)
    stop(first, number)
    again = run(*COMMAND, "--json", cwd=folder, input=b"".join(rows))
    assert again.code == 0, again.stderr
    assert "resuming after " in again.stderr
    assert again.json()["rows"]["learned"] == 3000
    assert not (folder / "C.lock").exists()


def test_a_run_that_fails_holds_nothing(folder) -> None:
    with open(folder / "a.csv", "a") as file:
        file.write("a row,that,cannot,be,read,x\n")
    assert invoke(*FILE_COMMAND).code == 2
    assert not (folder / "C.lock").exists()
