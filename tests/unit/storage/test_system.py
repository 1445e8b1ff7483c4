"""What depends on the system: the implementation for Windows, put in the place of the other."""

import ast
import ctypes
import errno
import os
import signal
from pathlib import Path

import pytest

import sapwood
from sapwood.evaluate import checkpoint
from sapwood.serve import wal
from sapwood.storage import atomic, lock
from sapwood.system import HeldError, Posix, Windows

USERS = (atomic, checkpoint, lock, wal)


class Runtime:
    """The locks of Windows' C runtime: of bytes, and gone when the file is closed."""

    LK_NBLCK = 2

    def __init__(self):
        self._held = {}

    def locking(self, handle, mode, count):
        assert (mode, count) == (self.LK_NBLCK, 1)
        found = os.fstat(handle)
        key = found.st_dev, found.st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        holder = self._held.get(key)
        if holder not in (None, handle) and self._is_open(holder, key):
            raise OSError(errno.EACCES, "Permission denied")
        self._held[key] = handle

    @staticmethod
    def _is_open(handle, key):
        try:
            found = os.fstat(handle)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == key[:2]


def open_files():
    """The files that this process has open."""
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return {os.readlink(link) for link in links if os.path.islink(link)}


@pytest.fixture
def windows(monkeypatch):
    """Let all modules use the implementation for Windows, on a system that behaves like it."""
    made = Windows(Runtime(), sleep=lambda seconds: None)
    for module in USERS:
        monkeypatch.setattr(module, "system", made)
    unlink = os.unlink

    def unlink_closed(path, **options):
        if os.path.realpath(path) in open_files():
            raise PermissionError(errno.EACCES, "the file is used by another process", path)
        unlink(path, **options)

    if os.path.isdir("/proc/self/fd"):
        monkeypatch.setattr(os, "unlink", unlink_closed)
    return made


def test_a_lock_is_held_once_and_then_removed(windows, tmp_path):
    path = str(tmp_path / "lock")
    with lock.hold(path) as is_sure:
        assert is_sure
        with pytest.raises(lock.Held) as caught, lock.hold(path):
            pass
        assert caught.value.process == os.getpid()
    assert os.listdir(tmp_path) == []
    with lock.hold(path):
        assert os.listdir(tmp_path) == ["lock"]


def test_a_lock_can_be_read_by_those_who_wait(windows, tmp_path):
    """The locked byte is far behind the number of the process."""
    path = tmp_path / "lock"
    with lock.hold(str(path)):
        assert path.read_bytes() == str(os.getpid()).encode()


@pytest.mark.parametrize("system", [Posix(), Windows(Runtime())], ids=["posix", "windows"])
def test_both_systems_lock_in_the_same_way(system, tmp_path):
    handles = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    assert system.lock(handles[0])
    with pytest.raises(HeldError):
        system.lock(handles[1])
    assert os.lseek(handles[1], 0, os.SEEK_CUR) == 0
    os.close(handles[0])
    assert system.lock(handles[1])
    os.close(handles[1])


def test_a_system_without_locks_is_reported(tmp_path):
    class Nothing:
        LK_NBLCK = 2

        def locking(self, *arguments):
            raise OSError(errno.ENOSYS, "Function not implemented")

    handle = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    assert Windows(Nothing()).lock(handle) is False
    os.close(handle)


def in_use(times, code=32):
    """Return os.replace as it is while another process has the file open."""
    replace, left = os.replace, [times]

    def attempt(source, target):
        if left[0]:
            left[0] -= 1
            error = PermissionError(errno.EACCES, "the file is used by another process")
            error.winerror = code
            raise error
        replace(source, target)

    return attempt


def test_a_file_in_use_is_replaced_when_it_is_closed(windows, monkeypatch, tmp_path):
    path, pauses = tmp_path / "model", []
    path.write_bytes(b"old")
    windows._sleep = pauses.append
    monkeypatch.setattr(os, "replace", in_use(3))
    atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert pauses == list(Windows.PAUSES[:3])


@pytest.mark.parametrize(("times", "code"), [(99, 32), (1, 112)], ids=["for long", "full disk"])
def test_a_file_that_cannot_be_replaced_stays(windows, monkeypatch, tmp_path, times, code):
    path, pauses = tmp_path / "model", []
    path.write_bytes(b"old")
    windows._sleep = pauses.append
    monkeypatch.setattr(os, "replace", in_use(times, code))
    with pytest.raises(PermissionError):
        atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]
    assert pauses == (list(Windows.PAUSES) if code == 32 else [])


def test_models_and_the_log_are_written(windows, monkeypatch, tmp_path):
    def forbidden(*arguments):
        raise AssertionError("Windows has no such call")

    monkeypatch.setattr(os, "fdatasync", forbidden, raising=False)
    tree = sapwood.HoeffdingTreeRegressor()
    tree.learn_one({"a": 1.0}, 2.0)
    tree.save(tmp_path / "model")
    assert sapwood.load(tmp_path / "model").to_bytes() == tree.to_bytes()
    folder = tmp_path / "log"
    folder.mkdir()
    log = wal.WriteAheadLog(folder)
    assert list(log.open(0)) == []
    log.append([b"one\ntwo", b"three"], 1.0)
    log.rotate()
    log.append([b"four"], 2.0)
    log.remove_before(2)
    log.close()
    again = wal.WriteAheadLog(folder)
    assert [record.payload for record in again.open(2)] == [b"four"]
    again.close()
    assert len(os.listdir(folder)) == 1


def test_flags_keep_bytes_as_they_are(monkeypatch):
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    monkeypatch.setattr(os, "O_NOINHERIT", 0x80, raising=False)
    assert Windows().binary == 0x8080
    assert Windows().no_link == 0


def test_signals_that_stop(monkeypatch):
    assert Posix().stop_signals == (signal.SIGINT, signal.SIGTERM)
    monkeypatch.setattr(signal, "SIGBREAK", 21, raising=False)
    assert Windows().stop_signals == (signal.SIGINT, signal.SIGTERM, 21)


class Library:
    """The part of kernel32 that reports memory."""

    def __init__(self, works=True):
        self._works = works

    def GetCurrentProcess(self):  # noqa: N802 - as Windows calls it
        return -1

    def K32GetProcessMemoryInfo(self, process, counters, size):  # noqa: N802
        class Counters(ctypes.Structure):
            _fields_ = (
                *(("cb", ctypes.c_uint32), ("PageFaultCount", ctypes.c_uint32)),
                *(("PeakWorkingSetSize", ctypes.c_size_t), ("WorkingSetSize", ctypes.c_size_t)),
                *((f"part{place}", ctypes.c_size_t) for place in range(6)),
            )

        found = ctypes.cast(counters, ctypes.POINTER(Counters)).contents
        assert found.cb == size == ctypes.sizeof(Counters)
        found.WorkingSetSize = 123_456
        return self._works


def test_memory_cores_and_shells():
    assert Windows(kernel32=Library()).resident_bytes == 123_456
    assert Windows(kernel32=Library(works=False)).resident_bytes is None
    assert Posix().resident_bytes is None or Posix().resident_bytes > 10**6
    assert Posix().cores >= 1
    assert Windows().cores >= 1
    assert (Posix().quoted("a b"), Windows().quoted("a b")) == ("'a b'", '"a b"')
    assert Windows(sleep=lambda seconds: None).wait_for_input(None, None) is False
    assert Windows().flush_folder("nowhere") is None


FORBIDDEN = {
    *("os.replace", "os.rename", "os.fork", "os.fdatasync", "os.sched_getaffinity", "os.sysconf"),
    *("os.name", "os.O_CLOEXEC", "os.O_BINARY", "os.sched_setaffinity", "os.kill"),
    *("sys.platform", "select.select", "signal.SIGKILL", "signal.SIGHUP", "signal.SIGUSR1"),
}
MODULES = {"fcntl", "msvcrt", "resource", "termios", "pwd", "grp", "select"}


def uses(tree):
    """Yield what a module uses that depends on the system."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in FORBIDDEN:
                yield name


def test_no_other_module_depends_on_the_system():
    folder = Path(sapwood.__file__).parent
    found = {
        str(path.relative_to(folder)): sorted(set(uses(ast.parse(path.read_text("utf-8")))))
        for path in sorted(folder.rglob("*.py"))
    }
    assert found.pop("system.py")
    assert {name: used for name, used in found.items() if used} == {}
