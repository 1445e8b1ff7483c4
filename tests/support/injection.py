"""Fault injection: an action is interrupted at each of its points, and the result is checked.

A *case* (see `injection_cases`) has a subject, an action that changes it, and a check of the
subject afterwards. A *fault* (see `injection_faults`) interrupts the action at its n-th point. A
*sweep* tries all points, or every n-th one, each on a subject of its own.

A fault in a kernel may crash the process, or hang it. Therefore `python
tests/support/injection.py FAULT CASE...` sweeps in child processes, which report each point they
try, and resumes after the point that ended one. It prints one line of JSON for each sweep.
"""

import argparse
import contextlib
import faulthandler
import itertools
import json
import os
import re
import select
import signal
import site
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from injection_cases import CASES, BrokenError
from injection_faults import FAULTS, PACKAGE, STRIKING

SILENCE = 300.0  # seconds without a word after which a child is taken to hang, however busy all is
# That NumPy's or Python's own modules crash when their memory is short is not for us to mend.
OTHERS = (*site.getsitepackages(), os.path.dirname(os.__file__))
MOST_DESCRIBED = 30  # faults that a report describes in words


@dataclass
class Report:
    """What a sweep has found."""

    fault: str
    case: str
    points: int = 0  # that were reached
    left: Counter = field(default_factory=Counter)  # how subjects were left
    symptoms: Counter = field(default_factory=Counter)  # what must not be
    described: list = field(default_factory=list)  # point, line and symptom of the first of these

    def add(self, point, verdict, where, complaint):
        self.points += 1
        if complaint:
            self.symptoms[complaint.split(":")[0]] += 1
            if len(self.described) < MOST_DESCRIBED:
                self.described.append(f"{point} at {where or '?'}: {complaint}")
        else:
            self.left[verdict] += 1


class Sweep:
    """A sweep of the points of a case, in children.

    Parameters
    ----------
    fault, case
        The fault, and the case.
    last_words : file
        For the traceback of a child that crashes.
    silence : float
        Seconds without a word after which a child is taken to hang.
    """

    def __init__(self, fault, case, last_words, silence):
        self.fault, self.case, self.last_words, self.silence = fault, case, last_words, silence
        self.patience = fault.patience

    def run(self, report, most_points=None, strikes=None):
        """Try all points, or about so many of them.

        Parameters
        ----------
        report : Report
            Called with each result.
        most_points : int, optional
            About how many points are tried, spread evenly.
        strikes : int, optional
            How many points have to be reached, for faults that strike at random.
        """
        total = self._total()
        step = 1 if most_points is None else max(1, total // most_points)
        self.patience = max(min(3, self.fault.patience), self.fault.patience // step)
        point = 1 + step // 2
        while point is not None:
            wanted = None if strikes is None else strikes - report.points
            point = self._go_on(report, itertools.count(point, step), wanted)
            point = None if point is None else point + step

    def _total(self):
        """Return how many points there are, or a guess."""
        if not self.fault.is_risky:
            return self.fault.total(self.case)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                faulthandler.disable()
                signal.alarm(int(self.silence))
                os.write(writing, str(self.fault.total(self.case)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        return int(answer or 1000)

    def _go_on(self, report, points, wanted):
        """Try points in a child; return the one that ended it, None if all were tried."""
        reading, writing = os.pipe()
        self.last_words.truncate(0)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                faulthandler.enable(self.last_words)
                self._try_here(points, wanted, partial(_send, writing))
                os._exit(0)
            os._exit(1)
        os.close(writing)
        tried, is_silent = next(points), False
        with open(reading, "rb", buffering=0) as pipe:
            for kind, content in _messages(pipe, self.silence):
                if kind == "try":
                    tried = content
                elif kind == "found":
                    report.add(tried, *content)
                else:
                    is_silent = True
                    os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return None
        symptom = "the child gave up"
        if os.WIFSIGNALED(status):
            symptom = "hang" if is_silent else signal.Signals(os.WTERMSIG(status)).name
        self.last_words.seek(0)
        lines = re.findall(r'File "(.*)", line (\d+)', self.last_words.read().decode())
        path, line = lines[0] if lines else ("?", "?")
        is_acting = any(path == STRIKING for path, _ in lines)
        if is_acting and path.startswith(OTHERS) and not path.startswith(PACKAGE):
            report.add(tried, f"{symptom} of others", "", "")
        else:
            report.add(tried, "", f"{Path(path).name}:{line}", symptom)
        return tried

    def _try_here(self, points, wanted, report):
        idle = strikes = 0
        for point in points:
            report("try", point)
            strike, verdict, complaint = self._try_point(point)
            if strike.struck or complaint:
                idle, strikes = 0, strikes + 1
                report("found", [verdict, strike.where, complaint])
            else:
                idle += 1
            if strikes == wanted or (wanted is None and idle >= self.patience):
                return

    def _try_point(self, point):
        """Return what became of the action, and the verdict or the complaint."""
        case, verdict = self.case, ""
        subject = case.start()
        strike = self.fault.strike(lambda: case.act(subject), point)
        complaint = strike.complaint
        if not complaint:
            try:
                verdict = case.check(subject)
                if strike.completed and verdict != "after":
                    complaint = f"completed, but {verdict}"
            except BrokenError as broken:
                complaint = str(broken)
            except BaseException as error:
                complaint = f"unusable: {type(error).__name__}: {error}"
        if complaint:  # it may be worse than that
            with contextlib.suppress(Exception):
                case.use_regardless(subject)
        return strike, verdict, complaint


def _send(pipe, kind, content):
    os.write(pipe, json.dumps([kind, content]).encode() + b"\n")


def _messages(pipe, silence):
    """Messages of a child, until it ends or falls silent."""
    rest = b""
    while True:
        if not select.select([pipe], [], [], silence)[0]:
            yield "silent", None
            return
        part = os.read(pipe.fileno(), 1 << 16)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield json.loads(line)


def main():
    """Sweep according to the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("cases", nargs="+", choices=CASES)
    parser.add_argument("--most-points", type=int)
    parser.add_argument("--strikes", type=int)
    parser.add_argument("--silence", type=float, default=SILENCE)
    arguments = parser.parse_args()
    faulthandler.enable()
    fault = FAULTS[arguments.fault]()
    for case in arguments.cases:
        report = Report(arguments.fault, case)
        with CASES[case]() as made, tempfile.TemporaryFile() as last_words:
            sweep = Sweep(fault, made, last_words, arguments.silence)
            sweep.run(report, arguments.most_points, arguments.strikes)
        print(json.dumps(vars(report)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
