"""Shared by the tests of the command line: running it, and files to run it on."""

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from cases import PATIENCE
from sapwood.cli.app import app

PROGRAM = str(Path(sys.executable).with_name("sapwood"))
TIMES = ("seconds", "model_seconds", "rows_per_second")
HEADER = "a,b,flag,city,sold,y"
CITIES = ("Oslo", "Bonn", "Rome")


@dataclass(frozen=True)
class Ended:
    """How a command ended: in this process or in one of its own."""

    code: int
    stdout: str
    stderr: str

    def json(self):
        """The result, but for the times."""
        found = json.loads(self.stdout)
        return {name: value for name, value in found.items() if name not in TIMES}


def invoke(*arguments, input=None):
    """Run a command in this process: quick, but without signals and pipes."""
    result = CliRunner().invoke(app, list(map(str, arguments)), input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def run(*arguments, cwd=None, input=None, limit=None):
    """Run a command in a process of its own; `limit` are the bytes that a file may have."""
    return end_of(start(*arguments, cwd=cwd, limit=limit), input)


def run_struck(number, moment, *arguments, cwd, count=1, seconds=0.0):
    """Run a command that a signal strikes at a moment that `strike.py` knows."""
    strike = (sys.executable, Path(__file__).with_name("strike.py"), int(number), moment)
    return end_of(start(*arguments, cwd=cwd, program=[*strike, count, seconds]))


def end_of(process, input=None):
    """Wait for the end of a process, and return its result."""
    stdout, stderr = process.communicate(input, timeout=PATIENCE)
    return Ended(process.returncode, stdout.decode(), stderr.decode())


def start(*arguments, cwd=None, limit=None, program=(PROGRAM,)):
    """Start a process, with pipes to it and from it."""
    command = [*map(str, program), *map(str, arguments)]
    if limit is not None:
        command = ["bash", "-c", f'ulimit -f {limit // 1024}; exec "$@"', "bash", *command]
    return subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100"},
    )


def wait_until(condition, process):
    """Wait for a condition while a process runs; return whether it became true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.0005)
    raise AssertionError("nothing happened")


def write(process, text):
    """Write to the input of a process, and wait until it has read all of it."""
    process.stdin.write(text.encode())
    process.stdin.flush()
    unread = array("i", [1])

    def is_read():
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        return unread[0] == 0

    assert wait_until(is_read, process)


def stop(process, number=signal.SIGKILL):
    """Send a signal, and return how the process ended."""
    process.send_signal(number)
    return end_of(process)


def rows_of(count, seed=1, start=0):
    """Lines without their ends: numbers, booleans, categories, times, a target; some missing."""
    draw = np.random.default_rng([seed, start])
    a, b = draw.random((2, count)).round(4)
    flags, cities = draw.integers(0, 2, count), draw.integers(0, 3, count)
    y = 3.0 * a * b + np.array([0.0, 2.0, 1.0])[cities] + flags + draw.normal(0.0, 0.1, count)
    columns = (a, b, flags, cities, y.round(4))
    lines = []
    for place, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        left, right, flag, city, target = values
        hours = start + place
        moment = f"2026-{1 + hours // 672 % 12:02d}-{1 + hours // 24 % 28:02d} {hours % 24:02d}:30"
        shown = "" if place % 13 == 0 else right
        lines.append(
            f"{left},{shown},{'true' if flag else 'false'},{CITIES[city]},{moment},{target}"
        )
    return lines


def write_csv(path, lines, header=HEADER):
    """Write a CSV file of lines, which may be bytes."""
    encoded = [line if isinstance(line, bytes) else line.encode() for line in [header, *lines]]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def read_csv(path):
    """The rows of a CSV file as dicts; bytes that are no UTF-8 are escaped."""
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def fields_of(line):
    """A line of `rows_of` as a dict of what Python would be given."""
    a, b, flag, city, sold, y = line.split(",")
    return {
        "a": float(a),
        "b": float(b) if b else None,
        "flag": flag == "true",
        "city": city,
        "sold": sold,
        "y": float(y),
    }


def assert_fails(ended, *words, code=2):
    """A command has failed as it should: in one line that has some words, with nothing else.

    Only the table of columns may stand before it.
    """
    assert ended.code == code, ended.stderr
    assert ended.stdout == ""
    assert ended.stderr.endswith("\n")
    *before, last = ended.stderr.splitlines()
    assert last.startswith("sapwood: ")
    assert not before or "how columns are read" in "".join(before[:2]), ended.stderr
    assert not any("sapwood: " in line or "Traceback" in line for line in before), ended.stderr
    for word in words:
        assert word in last
