"""Model files are written whole or not at all, whatever fails, and keep their permissions."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from modelfile_cases import ARRAYS, HEADER, KIND, assert_same, written
from sapwood.storage import atomic, container


@pytest.fixture
def data():
    return container.pack(KIND, HEADER, ARRAYS)


@pytest.fixture
def old(tmp_path):
    return written(tmp_path)


class OutOfOrderError(OSError):
    """A failure that only these tests raise."""


def failing(*_, **__):
    raise OutOfOrderError(errno.EIO, "Out of order")


class FullDisk:
    """A file that takes some bytes and then no more."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def fileno(self):
        return self.stream.fileno()

    def write(self, data):
        self.stream.write(data[:10])
        self.stream.flush()
        raise OutOfOrderError(errno.ENOSPC, "Out of order")


def open_on_a_full_disk(*arguments, **options):
    return FullDisk(open(*arguments, **options))


@pytest.mark.parametrize("step", ["open", "chmod", "write", "fsync", "replace"])
def test_a_failure_leaves_the_old_file(old, data, monkeypatch, step):
    old.chmod(0o666)  # wider than a new one
    if step == "write":
        monkeypatch.setattr(atomic, "open", open_on_a_full_disk, raising=False)
    else:
        monkeypatch.setattr(os, step, failing)
    with pytest.raises(OutOfOrderError, match=re.escape(f"Out of order: '{old}'")):
        container.write(old, KIND, {"new": True}, {})
    monkeypatch.undo()
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]


def test_a_failure_without_an_old_file_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutOfOrderError):
        container.write(tmp_path / "new", KIND, {}, {})
    assert os.listdir(tmp_path) == []


def test_an_interruption_leaves_the_old_file(old, data, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        container.write(old, KIND, {"new": True}, {})
    assert old.read_bytes() == data
    assert os.listdir(old.parent) == ["my.model"]


def test_the_order_of_the_steps(old, monkeypatch):
    """The content is on the disk before the name is, and the name before the call returns."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(handle):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        steps.append("folder" if folder else f"{os.fstat(handle).st_size} bytes")
        fsync(handle)

    def note_replace(source, target):
        assert os.path.dirname(source) == os.path.dirname(target) == str(old.parent)
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    container.write(old, KIND, {}, {})
    assert steps == [f"{len(container.pack(KIND, {}, {}))} bytes", "replace", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_a_folder_that_cannot_be_flushed(old, monkeypatch, code):
    fsync = os.fsync

    def fail_for_folders(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            container.write(old, KIND, {"new": True}, {})
    else:
        container.write(old, KIND, {"new": True}, {})
    assert container.read(old, KIND) == ({"new": True}, {})
    assert os.listdir(old.parent) == ["my.model"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions(tmp_path, umask):
    file = tmp_path / "model"
    before = os.umask(umask)
    try:
        container.write(file, KIND, {}, {})
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
        for mode in (0o600, 0o640, 0o666):
            file.chmod(mode)
            container.write(file, KIND, {}, {})
            assert stat.S_IMODE(file.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_private_file_is_never_open_to_others(old, monkeypatch):
    modes = []
    fsync = os.fsync

    def note(handle):
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        fsync(handle)

    def create(file, flags, mode=0o777, **_):
        modes.append(mode)
        return real(file, flags, mode)

    real = os.open
    old.chmod(0o600)
    monkeypatch.setattr(os, "open", create)
    monkeypatch.setattr(os, "fsync", note)
    container.write(old, KIND, {}, {})
    assert modes[:2] == [0o600, 0o600]


def test_a_file_that_may_not_be_written(old, data, monkeypatch):
    monkeypatch.setattr(os, "access", lambda file, mode: mode != os.W_OK)  # as root may do all
    with pytest.raises(PermissionError, match=re.escape(f"Permission denied: '{old}'")):
        container.write(old, KIND, {}, {})
    assert old.read_bytes() == data


def test_paths_that_cannot_be_written(tmp_path):
    for path in ("", str(tmp_path), f"{tmp_path}/", f"{tmp_path}/new/"):
        with pytest.raises(IsADirectoryError, match=re.escape(f"Is a directory: '{path}'")):
            container.write(path, KIND, {}, {})
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{tmp_path}/no/model'")):
        container.write(tmp_path / "no" / "model", KIND, {}, {})
    with pytest.raises(NotADirectoryError):
        container.write(Path(sys.executable, "model"), KIND, {}, {})
    assert os.listdir(tmp_path) == []


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"Not a regular file: '.*pipe'"):
        container.write(tmp_path / "pipe", KIND, {}, {})
    assert (tmp_path / "pipe").is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/model")
    for depth in (1, 2):
        container.write(tmp_path / "link", KIND, {"depth": depth}, {})
        assert (tmp_path / "link").is_symlink()
        assert container.read(tmp_path / "folder" / "model", KIND) == ({"depth": depth}, {})
    assert os.listdir(tmp_path / "folder") == ["model"]


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "..model", "a b\n", "\udc80"])
def test_unusual_names(tmp_path, name):
    for depth in (1, 2):
        container.write(tmp_path / name, KIND, {"depth": depth}, {})
    assert container.read(tmp_path / name, KIND) == ({"depth": 2}, {})
    assert os.listdir(tmp_path) == [name]


def test_two_writers_do_not_collide(tmp_path):
    file = tmp_path / "model"
    arrays = {1: {"a": np.full(1000, 1.0)}, 2: {"a": np.full(5000, 2.0)}}
    failures = []

    def save(writer):
        try:
            for _ in range(30):
                container.write(file, KIND, {"writer": writer}, arrays[writer])
                header, found = container.read(file, KIND)
                assert_same(found, arrays[header["writer"]])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=[writer]) for writer in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["model"]


SAVE_FOR_EVER = """
import sys
import numpy as np
from sapwood.storage import container

path, count = sys.argv[1], int(sys.argv[2])
while True:
    count += 1
    container.write(path, "stump", {"count": count}, {"a": np.full(100_000 + count, float(count))})
    print(count, flush=True)
"""


def test_killed_while_saving(tmp_path):
    file = tmp_path / "model"
    last = 0
    rng = np.random.default_rng(0)
    for _ in range(12):
        command = [sys.executable, "-c", SAVE_FOR_EVER, str(file), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(rng.integers(1, 20)):
                saved = int(process.stdout.readline())
                count = check_saved(file)
                assert count >= saved > last
            threading.Event().wait(rng.uniform(0, 0.01))
            process.send_signal(signal.SIGKILL)
            saved = max([saved, *map(int, process.stdout.read().split())])
        assert process.returncode == -signal.SIGKILL
        last = check_saved(file)
        assert last in (saved, saved + 1)
    left = [name for name in os.listdir(tmp_path) if name != "model"]
    assert all(re.fullmatch(r"\.model\.[0-9a-f]{32}\.tmp", name) for name in left)


def check_saved(file):
    header, arrays = container.read(file, KIND)
    count = header["count"]
    assert arrays["a"].shape == (100_000 + count,)
    assert (arrays["a"] == count).all()
    return count
