"""Faults that break an action off at its n-th point."""

import contextlib
import ctypes
import mmap
import random
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import sapwood

try:
    import _testcapi
except ImportError:  # some distributions leave it out
    _testcapi = None

STRIKING = __file__
PACKAGE = str(Path(sapwood.__file__).parent)
# Context managers of the package are run by those of Python.
TRACED = (PACKAGE, contextlib.__file__)

Action = Callable[[], Any]


class Injected(KeyboardInterrupt):
    """What is raised on purpose, as Ctrl-C would be."""


@dataclass
class Strike:
    """What became of an action."""

    struck: bool  # whether its point was reached
    completed: bool = False  # whether the action was
    where: str = ""
    complaint: str = ""  # if another exception was raised than the injected one


class Lines:
    """Raises at the n-th traced line of the package."""

    event = "line"
    is_risky = False
    patience = 1

    def strike(self, action: Action, point: int) -> Strike:
        """Break an action off at a point."""
        self.seen, where, swallowed, found = 0, "", [], None
        error = Injected(point)

        def inside(frame, event, argument):
            nonlocal where
            if event == self.event:
                self.seen += 1
                if self.seen == point:
                    where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                    raise error
            return inside

        def entered(frame, event, argument):
            if not frame.f_code.co_filename.startswith(TRACED):
                return None
            frame.f_trace_opcodes = self.event == "opcode"
            return inside

        def swallow(event):
            swallowed.append(event.exc_value)

        hook, sys.unraisablehook = sys.unraisablehook, swallow
        sys.settrace(entered)
        try:
            action()
        except BaseException as raised:
            found = raised
        finally:
            sys.settrace(None)
            sys.unraisablehook = hook
        complaint = ""
        if found is not None and found is not error:
            complaint = f"another exception: {found!r}"
        # What is raised while an object is finalised ends there.
        elif self.seen >= point and found is None and error not in swallowed:
            complaint = "the exception was lost"
        return Strike(self.seen >= point, found is None, where, complaint)

    def total(self, case: Any) -> int:
        """Count the points; twice, as the first round may import what the second has."""
        for _ in range(2):
            self.strike(partial(case.act, case.start()), sys.maxsize)
        return self.seen


class Bytecodes(Lines):
    """Raises before the n-th traced bytecode of the package."""

    event = "opcode"


class Memory:
    """Lets allocations fail: so many from the n-th on.

    Were it all of them, CPython 3.11 itself would hang, or give up: a frame whose exception it has
    no memory to handle has to handle that, again and again.
    """

    is_risky = True  # even to count the points
    patience = 40  # a fault may also be put up with, so that nothing is raised

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def begin(self, point: int) -> None:
        """Let allocations fail."""
        raise NotImplementedError

    def end(self) -> None:
        """Let them succeed again."""
        raise NotImplementedError

    def strike(self, action: Action, point: int) -> Strike:
        """Break an action off at a point."""
        found = None
        self.begin(point)
        try:
            action()
        except BaseException as raised:
            found = raised
        finally:
            self.end()
        if found is None:
            return Strike(False, True)
        complaint = "" if _is_memory_error(found) else f"another exception: {found!r}"
        return Strike(True, False, _last_line(found), complaint)

    def total(self, case: Any) -> int:
        """Return about how many points there are."""
        point, idle = 1, 0
        while idle < 3:
            idle = 0 if self.strike(partial(case.act, case.start()), point).struck else idle + 1
            point *= 2
        return max(1, point // 12)  # about the middle of what the last point reached may be


class PythonMemory(Memory):
    """Lets Python's own allocators fail."""

    def begin(self, point: int) -> None:
        """Let allocations fail."""
        _testcapi.set_nomemory(point, point + self.failures)

    def end(self) -> None:
        """Let them succeed again."""
        _testcapi.remove_mem_hooks()


class CountedMemory(Memory):
    """Lets functions in C fail that a callback takes the place of."""

    patience = 3  # a point was reached even if the fault is put up with

    def __init__(self, failures: int) -> None:
        super().__init__(failures)
        self.calls, self.point = 0, sys.maxsize
        self.failed = False

    def fails(self) -> bool:
        """Whether the call that was made just now is to fail."""
        self.calls += 1
        fails = 0 <= self.calls - self.point < self.failures
        self.failed |= fails
        return fails

    def begin(self, point: int) -> None:
        """Let allocations fail."""
        self.calls, self.point, self.failed = 0, point, False

    def end(self) -> None:
        """Let them succeed again."""
        self.point = sys.maxsize

    def strike(self, action: Action, point: int) -> Strike:
        """Break an action off at a point."""
        strike = super().strike(action, point)
        strike.struck |= self.failed
        return strike

    def total(self, case: Any) -> int:
        """Count the points."""
        self.strike(partial(case.act, case.start()), sys.maxsize)
        return self.calls


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler (NEP 49)."""

    # NumPy's own functions have to be called with the GIL.
    ALLOCATE = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    CLEARED = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    RESIZE = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ALLOCATE),
        ("calloc", CLEARED),
        ("realloc", RESIZE),
        ("free", ctypes.c_void_p),
    )


class NumpyMemory(CountedMemory):
    """Lets NumPy's allocator of array data fail."""

    SET_HANDLER, GET_HANDLER = 304, 305  # in the table of NumPy's functions for C
    NAME = b"mem_handler"

    def __init__(self, failures: int) -> None:
        super().__init__(failures)
        pointer, api = ctypes.c_void_p, ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = pointer
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [pointer, ctypes.c_char_p, pointer]
        table = api.PyCapsule_GetPointer(np._core.multiarray._ARRAY_API, None)
        functions = ctypes.cast(table, ctypes.POINTER(pointer))
        get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(functions[self.GET_HANDLER])
        set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
            functions[self.SET_HANDLER]
        )
        usual = Handler.from_address(api.PyCapsule_GetPointer(get_handler(), self.NAME))
        # All of this has to live as long as any array does.
        self.handler = Handler(
            b"failing",
            usual.version,
            usual.context,
            Handler.ALLOCATE(lambda *size: None if self.fails() else usual.malloc(*size)),
            Handler.CLEARED(lambda *size: None if self.fails() else usual.calloc(*size)),
            Handler.RESIZE(lambda *size: None if self.fails() else usual.realloc(*size)),
            usual.free,  # not a function in Python: it is called while exceptions are raised
        )
        set_handler(api.PyCapsule_New(ctypes.addressof(self.handler), self.NAME, None))


class KernelMemory(CountedMemory):
    """Lets `malloc`, `calloc` and `realloc` fail where the package's own kernels call them.

    Their addresses are in tables of the shared objects, which the callbacks are entered in.
    """

    SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p
    KINDS: ClassVar = {
        b"malloc": ctypes.PYFUNCTYPE(POINTER, SIZE),
        b"calloc": ctypes.PYFUNCTYPE(POINTER, SIZE, SIZE),
        b"realloc": ctypes.PYFUNCTYPE(POINTER, POINTER, SIZE),
    }

    def __init__(self, failures: int) -> None:
        super().__init__(failures)
        libc = ctypes.PyDLL(None)
        self.callbacks = {name: self._callback(name, libc) for name in self.KINDS}
        self.places = 0
        for path, base in _kernels().items():
            for name, offset in _imported(Path(path).read_bytes()):
                if name in self.callbacks:
                    _enter(libc, base + offset, self.callbacks[name])
                    self.places += 1
        assert self.places > 0

    def _callback(self, name: bytes, libc: ctypes.PyDLL) -> Any:
        kind = self.KINDS[name]
        usual = kind((name.decode(), libc))
        return kind(lambda *sizes: None if self.fails() else usual(*sizes))


def _kernels() -> dict[str, int]:
    """The shared objects of the package that are loaded, and where."""
    kernels: dict[str, int] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith(PACKAGE) and fields[5].endswith(".so"):
            kernels.setdefault(fields[5], int(fields[0].split("-")[0], 16))
    return kernels


def _imported(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Names of functions that an ELF file of 64 bits imports, and where their addresses go."""
    start, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, start + size * number) for number in range(count)
    ]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != 4:  # relocations with addends
            continue
        symbols = sections[link]
        names = sections[symbols[6]][4]
        for place in range(offset, offset + length, 24):
            address, info, _ = struct.unpack_from("<QQq", data, place)
            (name,) = struct.unpack_from("<I", data, symbols[4] + 24 * (info >> 32))
            yield data[names + name : data.index(b"\0", names + name)], address


def _enter(libc: ctypes.PyDLL, place: int, function: Any) -> None:
    """Write the address of a function to a place in memory that may not be written."""
    page = place & ~(mmap.PAGESIZE - 1)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    ctypes.c_void_p.from_address(place).value = ctypes.cast(function, ctypes.c_void_p).value


class AddressSpace:
    """Gives the process only so much more memory than it has."""

    is_risky = True
    patience = 3
    PORTION = 16 * 1024
    MMAP_THRESHOLD = -3  # for mallopt

    def __init__(self) -> None:
        # Nothing that is larger may come from what was freed before.
        ctypes.CDLL(None).mallopt(self.MMAP_THRESHOLD, self.PORTION)

    def strike(self, action: Action, point: int) -> Strike:
        """Let an action have so many portions."""
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (point - 1) * self.PORTION
        old = resource.getrlimit(resource.RLIMIT_AS)
        found = None
        resource.setrlimit(resource.RLIMIT_AS, (limit, old[1]))
        try:
            action()
        except BaseException as raised:
            found = raised
        finally:
            resource.setrlimit(resource.RLIMIT_AS, old)
        if found is None:
            return Strike(False, True)
        complaint = "" if _is_memory_error(found) else f"another exception: {found!r}"
        return Strike(True, False, _last_line(found), complaint)

    def total(self, case: Any) -> int:
        """Return a number of portions that suffices, or nearly."""
        point = 1
        while self.strike(partial(case.act, case.start()), point).struck:
            point *= 2
        return point


class Timer:
    """Raises from the handler of a signal, after a delay that the point is the seed of."""

    is_risky = False
    patience = 1

    def __init__(self) -> None:
        self.seconds = 0.0

    def strike(self, action: Action, point: int) -> Strike:
        """Interrupt an action at a random moment."""

        def handle(number, frame):
            raise Injected(point)

        found = None
        delay = max(1e-6, self.seconds * random.Random(point).random())
        signal.signal(signal.SIGALRM, handle)
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                action()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as raised:
            found = raised
        if found is None:
            return Strike(False, True)
        complaint = "" if isinstance(found, Injected) else f"another exception: {found!r}"
        return Strike(True, False, _last_line(found), complaint)

    def total(self, case: Any) -> int:
        """Learn how long the action takes; there is no end of points."""
        for _ in range(2):
            subject, start = case.start(), time.perf_counter()
            case.act(subject)
            self.seconds = time.perf_counter() - start
        return sys.maxsize


def _is_memory_error(error: BaseException | None) -> bool:
    """Whether an error is caused by lack of memory; functions in C may raise another one."""
    while error is not None and not isinstance(error, MemoryError):
        if isinstance(error, SystemError) and "without" in str(error):
            return True
        if isinstance(error, TypeError) and "StringDType is not" in str(error):
            return True  # NumPy's error if there is no memory for a dtype of records
        error = error.__cause__ or error.__context__
    return error is not None


def _last_line(error: BaseException) -> str:
    """Where in the package an error was raised."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith(PACKAGE):
            where = f"{Path(frame.f_code.co_filename).name}:{line}"
    return where


FAULTS: dict[str, Callable[[], Any]] = {
    "lines": Lines,
    "bytecodes": Bytecodes,
    "allocation": partial(PythonMemory, 1),
    "allocations": partial(PythonMemory, 10),
    "array": partial(NumpyMemory, 1),
    "arrays": partial(NumpyMemory, 10),
    "kernel": partial(KernelMemory, 1),
    "kernels": partial(KernelMemory, 10),
    "address-space": AddressSpace,
    "timer": Timer,
}
