"""Learners of MOA's in pure Java: what they cost without any bridge to Python.

MOA is taken from the jar in capymoa's wheel, which is looked up and not imported: neither its
other dependencies nor a Java machine inside Python are needed.
"""

import os
import struct
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["MoaProcess", "MoaTiming", "moa_command", "time_fimtdd"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PROGRAM = Path(__file__).with_name("Moa.java")
COMPILED = Path(__file__).parent / "__pycache__"
COMPILER = "jdk.compiler/com.sun.tools.javac.Main"
EXACT = "-XX:MarkSweepAlwaysCompactCount=1"
"""Lets every collection remove all dead objects, so that the heap holds live ones only."""
START, FOLLOW, FOLLOW_SINGLY, MEASURE, FOLLOW_LATE = range(5)
BLOCK = 10_000
FIMTDD = "moa.classifiers.trees.FIMTDD"
MOST_LETTERS = 300


class MoaTiming(NamedTuple):
    """The CPU time for one row in seconds, the best of all passes, and R²."""

    seconds: float
    r2: float


class MoaProcess:
    """A learner of MOA's in a Java process of its own, which keeps the time.

    Parameters
    ----------
    kinds : sequence of int
        How many categories each feature has; 0 for a number.
    learner : str
        Its class; FIMT-DD if not given.
    targets : int, optional
        How many it has, if it is a learner for several.

    Raises
    ------
    RuntimeError
        If there is no Java or no MOA; and whenever Java gives up, with its own words.
    """

    def __init__(
        self, kinds: Sequence[int], learner: str = FIMTDD, targets: int | None = None
    ) -> None:
        self._shape = () if targets is None else (targets,)
        command = moa_command(
            EXACT, PROGRAM.stem, learner, ",".join(map(str, kinds)), *map(str, self._shape)
        )
        if isinstance(command, str):
            raise RuntimeError(f"MOA cannot be run: {command}")
        _compile()
        self._words = TemporaryFile()  # noqa: SIM115, as it is closed with the process
        self._java = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words
        )

    def __enter__(self) -> Self:
        return self

    @property
    def running(self) -> bool:
        """Whether Java has not given up."""
        return self._java.poll() is None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End Java."""
        self._java.kill()
        self._java.wait()
        for pipe in (self._java.stdin, self._java.stdout, self._words):
            # What was not read to the end cannot be flushed.
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def start(self, options: str = "") -> None:
        """Start with a fresh learner.

        Parameters
        ----------
        options : str
            As on MOA's command line: "-g 50 -c 1e-3".
        """
        self._send(struct.pack(">BH", START, len(options)) + options.encode("ascii"))

    def follow(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Predict and then learn rows.

        Parameters
        ----------
        rows : array of float, shape (rows, features + targets)
            A category is a number from 0 on; the targets are last.

        Returns
        -------
        predictions : array of float
            Each from before its row was learned; of several targets, a column for each.
        nanoseconds : int
            What it took of the thread's CPU time.
        """
        return self._follow(FOLLOW, rows)

    def follow_late(self, rows: FloatArray) -> tuple[FloatArray, int]:
        """Predict all rows, and then learn them; as `follow`.

        Parameters
        ----------
        rows : array of float, shape (rows, features + targets)
            As for `follow`.
        """
        return self._follow(FOLLOW_LATE, rows)

    def _follow(self, command: int, rows: FloatArray) -> tuple[FloatArray, int]:
        self._send(struct.pack(">Bi", command, len(rows)) + rows.astype(">f8").tobytes())
        nanoseconds = int(self._receive(">i8", 1)[0])
        return self._predictions(len(rows)), nanoseconds

    def follow_singly(self, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """Predict and then learn rows, each by the clock.

        Parameters
        ----------
        rows : array of float, shape (rows, features + targets)
            As for `follow`.

        Returns
        -------
        predictions : array of float
            Each from before its row was learned.
        nanoseconds : array of int
            What each row took.
        """
        self._send(struct.pack(">Bi", FOLLOW_SINGLY, len(rows)) + rows.astype(">f8").tobytes())
        nanoseconds = self._receive(">i8", len(rows)).astype(np.int64)
        return self._predictions(len(rows)), nanoseconds

    def _predictions(self, rows: int) -> FloatArray:
        predicted = self._receive(">f8", rows * (self._shape[0] if self._shape else 1))
        return predicted.astype(np.float64).reshape(rows, *self._shape)

    def measure(self) -> tuple[int, int]:
        """Return the bytes of Java's heap that the learner takes, and of its serialized form.

        They are -1 where it is too deep or too large to be copied or written.
        """
        self._send(struct.pack(">B", MEASURE))
        heap, file = self._receive(">i8", 2)
        return int(heap), int(file)

    def _send(self, message: bytes) -> None:
        assert self._java.stdin is not None
        try:
            self._java.stdin.write(message)
            self._java.stdin.flush()
        except BrokenPipeError:
            self._give_up()

    def _receive(self, kind: str, count: int) -> NDArray[np.generic]:
        assert self._java.stdout is not None
        size = count * np.dtype(kind).itemsize
        answer = self._java.stdout.read(size)
        if len(answer) < size:
            self._give_up()
        return np.frombuffer(answer, dtype=kind)

    def _give_up(self) -> NoReturn:
        self._java.wait()
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip()
        self.close()
        raise RuntimeError(f"Java has stopped: {words[:MOST_LETTERS]}")


def time_fimtdd(x: FloatArray, y: FloatArray, passes: int) -> MoaTiming | str:
    """Let FIMT-DD predict and then learn every row; return the reason if that is impossible.

    Parameters
    ----------
    x : array
        The rows.
    y : array
        Their targets.
    passes : int
        How often, each time with a fresh learner: the first ones warm Java's compiler up.
    """
    reason = moa_command()
    if isinstance(reason, str):
        return reason
    rows = np.column_stack([x, y])
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    times = []
    with MoaProcess([0] * x.shape[1]) as learner:
        for _ in range(passes):
            learner.start()
            found = [learner.follow(block) for block in blocks]
            times.append(sum(nanoseconds for _, nanoseconds in found))
    predictions = np.concatenate([own for own, _ in found])
    r2 = 1 - np.mean((y - predictions) ** 2) / y.var()
    return MoaTiming(min(times) / 1e9 / len(y), float(r2))


def moa_command(*arguments: str) -> list[str] | str:
    """Return the command that runs something with MOA, or why that cannot be done."""
    java, jar = which("java"), _jar()
    if java is None:
        return "there is no java"
    if jar is None:
        return "capymoa is not installed"
    # Of Java's collectors, the one that MOA is quickest with.
    return [java, "-XX:+UseSerialGC", "-cp", f"{jar}{os.pathsep}{COMPILED}", *arguments]


def _compile() -> None:
    """Compile the program if it has changed; Java's own way, at each start, leaves traces."""
    made = COMPILED / f"{PROGRAM.stem}.class"
    if made.exists() and made.stat().st_mtime >= PROGRAM.stat().st_mtime:
        return
    COMPILED.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=COMPILED) as folder:
        command = moa_command("--module", COMPILER, "-cp", str(_jar()), "-d", folder, str(PROGRAM))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Java cannot compile {PROGRAM.name}: {done.stderr[:MOST_LETTERS]}")
        # The main class comes last: where it is, all others are.
        for each in sorted(Path(folder).iterdir(), key=lambda path: path.name == made.name):
            each.replace(COMPILED / each.name)


def _jar() -> Path | None:
    spec = find_spec("capymoa")
    if spec is None or not spec.submodule_search_locations:
        return None
    jar = Path(spec.submodule_search_locations[0]) / "jar" / "moa.jar"
    return jar if jar.exists() else None
