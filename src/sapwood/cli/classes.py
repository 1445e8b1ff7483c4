"""`--task classes`: the commands evaluate and train where the target is a class."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.classify import LaggedClassifier
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError, table_of
from sapwood.cli.horizons import AUTO
from sapwood.cli.job import Job
from sapwood.cli.models import make_classifier, saved_model, targets_of
from sapwood.cli.outputs import ClassPredictionFile, write_curves
from sapwood.cli.reading import ClassReading, Reading, is_classifier, with_own_options
from sapwood.cli.runs import Files, Learning, Scoring, Targets
from sapwood.cli.summary import print_drift
from sapwood.cli.values import amount, settings
from sapwood.drift import Monitor
from sapwood.evaluate.class_run import ClassRun
from sapwood.evaluate.class_scores import CLASS_METRICS
from sapwood.evaluate.classes import ClassEvaluation
from sapwood.formatting import plain
from sapwood.schema import Schema
from sapwood.streams.opening import is_read_once
from sapwood.streams.stream import Stream

__all__ = ["ClassJob", "is_of_classes"]

MOST_HINTED, LEAST_HINTED = 20, 100  # values of a target, in so many rows
MOST_SHOWN = 12  # classes of a confusion matrix in the terminal


def is_of_classes(
    name: Sequence[str], reading: Reading, learning: Learning, terminal: Terminal
) -> bool:
    """Whether a run is for classes: by --task, by a saved classifier, or by a target of text.

    A stream that can be read but once, or that is computed, is not looked at before.
    """
    if learning.task != "auto":
        return learning.task == "classes"
    model = saved_model(learning.model)
    if model is not None:
        return is_classifier(model)
    looked_at = learning.model.partition(":")[0] in ("tree", "adaptive", "forest")
    if not looked_at or name[0].partition(":")[0] in options.GENERATORS:
        return False
    alone, reading = with_own_options(name, reading)
    if any(map(is_read_once, [alone] if isinstance(alone, str) else alone)):
        return False
    return len(reading.target) == 1 and _has_text_target(alone, reading, terminal)


def _has_text_target(name: str | Sequence[str], reading: Reading, terminal: Terminal) -> bool:
    """Whether the target has text alone in the first rows."""
    stream = replace(reading, target=[]).open(name)
    kinds = {note.name: note.kind for note in stream.column_notes}
    target = reading.target[0]
    if kinds.get(target) not in ("category", "number"):
        return False
    first = next(iter(stream.chunks()), None)
    if first is None or target not in first.columns:
        return False
    if kinds[target] == "number":
        _hint_at_classes(target, np.asarray(first.columns[target], np.float64), terminal)
        return False
    return not any(map(_is_number, first.columns[target]))


def _hint_at_classes(target: str, values: NDArray[np.float64], terminal: Terminal) -> None:
    """Point to --task if a target of numbers may be one of classes: few of them, and all whole."""
    known = np.unique(values[np.isfinite(values)])
    few = 1 < len(known) <= MOST_HINTED and len(values) >= LEAST_HINTED
    if few and bool((known == np.floor(known)).all()):
        terminal.say(
            f"{plain(target)} has {len(known)} values, all whole numbers, and is predicted as a "
            "number; pass --task classes if they are classes, or --task numbers"
        )


def _is_number(value: object) -> bool:
    """Whether a value is a number: a target with some of them holds numbers and errors."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def print_classes(found: ClassEvaluation, to_stderr: bool = False) -> None:
    """Print the scores, the confusion matrix, and what became of all rows."""
    terminal = Terminal(stderr=to_stderr, highlight=False)
    terminal.say(f"{found.stream}: classes of {found.target}, by {found.model}")
    table = table_of("", "all rows")
    metrics = found.scores.metrics()
    for name, title in CLASS_METRICS.items():
        table.add_row(title, f"{metrics[name]:.4f}")
    for level, own in found.sets.items():
        table.add_row(f"coverage of sets, level {level}", f"{own['coverage']:.4f}")
        table.add_row(f"classes in a set, level {level}", f"{own['size']:.2f}")
    terminal.print(table)
    labels = found.scores.labels
    if len(labels) <= MOST_SHOWN:
        title = "rows by actual (down) and predicted class"
        names = (plain(str(label)) for label in labels)
        matrix = table_of("", *names, title=title, title_justify="left")
        for label, row in zip(labels, found.scores.confusion.tolist(), strict=True):
            matrix.add_row(plain(str(label)), *(f"{count:,}" for count in row))
        terminal.print(matrix)
    print_drift(found.drift_events, terminal)
    print_class_counts(found, terminal)


def print_class_counts(found: ClassEvaluation, terminal: Terminal) -> None:
    """Print what became of all rows."""
    words = [f"rows: {found.read:,} read", f"{found.scores.rows:,} scored"]
    if found.rejected:
        words.append(f"{found.rejected:,} rejected")
    if found.unlabelled:
        words.append(f"{found.unlabelled:,} without a label")
    if found.pending:
        words.append(f"{found.pending:,} pending")
    terminal.say(", ".join(words))
    leaves = f"{found.leaves:,} {'leaf' if found.leaves == 1 else 'leaves'}"
    terminal.say(f"model: {leaves}, {found.nbytes / 1e6:.2f} MB")


class ClassJob(Job):
    """A run of a classifier over a stream, as it was typed."""

    run: ClassRun
    show = staticmethod(print_classes)
    print_counts = staticmethod(print_class_counts)

    def __init__(
        self,
        name: list[str],
        reading: Reading,
        learning: Learning,
        targets: Targets,
        scoring: Scoring | None = None,
    ) -> None:
        scoring = scoring or Scoring()
        alone, reading = with_own_options(name, reading)
        self._check(reading, learning, targets, scoring)
        saved = saved_model(learning.model)
        if saved is not None and not is_classifier(saved):
            raise UsageError(f"--task classes: {learning.model} holds a {type(saved).__name__}")
        if saved is not None and learning.set_:
            raise UsageError(
                f"{learning.model} is a saved model: its parameters cannot be set any more"
            )
        self.target = self._target(reading, saved, learning.model)
        own = {each.name: getattr(reading, each.name) for each in fields(Reading)}
        own |= {"target": [], "model": saved, "label": self.target, "keys": tuple(learning.by)}
        self.stream = self._open(alone, ClassReading(**own))
        model: Any = saved
        if saved is None:
            features = {n: k for n, k in self.stream.features.items() if str(n) != self.target}
            given = settings(learning.set_, "--set")
            declared = [each for each in self.stream.declared if str(each) != self.target]
            model = make_classifier(learning.model, given, features, declared)
        lags = learning.made(self.target, self.stream.clock)
        if lags is not None and saved is not None:
            raise UsageError(f"{learning.model} is a saved model: its lags cannot be set any more")
        if lags is not None:
            model = LaggedClassifier(model, lags)
        self._take_schema(model, is_new=saved is None)
        try:
            self.run = ClassRun(
                model,
                self.stream,
                self.target,
                delay=self._delay(targets.delay),
                window=scoring.window,
                on_bad_row=targets.on_bad_row,
                monitor=Monitor(scoring.once_in, self.target) if scoring.monitor else None,
                levels=learning.interval,
            )
        except ValueError as error:
            raise UsageError(f"--interval: {error}") from None
        self.identity = self._identity(reading, learning, targets, scoring, lags)

    def _identity(
        self, reading: Reading, learning: Learning, targets: Targets, scoring: Scoring, lags: Any
    ) -> dict[str, Any]:
        """Return what a checkpoint has to be of; options that are newer only if given."""
        return {
            "stream": self.stream.fingerprint,
            "target": self.target,
            "task": "classes",
            "features": {str(name): kind for name, kind in self.stream.features.items()},
            "model": " ".join([learning.model, *learning.set_]),
            "delay": targets.delay,
            "window": scoring.window,
            "on_bad_row": targets.on_bad_row,
            **({"lags": repr(lags)} if lags is not None else {}),
            **({"ids": list(reading.id)} if reading.id else {}),
            **({"time": reading.time} if reading.time else {}),
            **({"once_in": scoring.once_in} if scoring.monitor else {}),
            **({"calendar": self.stream.calendar.fingerprint} if self.stream.calendar else {}),
            **({"interval": list(learning.interval)} if learning.interval else {}),
        }

    def _open(self, name: str | Sequence[str], reading: ClassReading) -> Stream:
        stream = reading.open(name)
        if self.target not in stream.features:
            known = ", ".join(map(str, stream.features))
            raise UsageError(
                f"{stream.name} has no column {self.target} of classes: columns are {known}"
            )
        return stream

    @staticmethod
    def _check(reading: Reading, learning: Learning, targets: Targets, scoring: Scoring) -> None:
        """Complain of options that there are not for classes."""
        reading.check_one_target("classes are those of one")
        given = {
            "--batch": learning.batch,
            **learning.of_the_target,
            "--labels": targets.labels,
            "--series": scoring.series,
            "--horizon": targets.horizon,
            "--lags auto": learning.lags == AUTO,
            "--means": learning.means,
            "--min": scoring.minimum is not None,
            "--max": scoring.maximum is not None,
            "--season": scoring.season,
        }
        for option, value in given.items():
            if value:
                raise UsageError(
                    f"{option} is for numbers, and the target is a class: leave it out"
                )

    @staticmethod
    def _target(reading: Reading, saved: Any, typed: str) -> str:
        known = () if saved is None else targets_of(saved)
        if reading.target and known and reading.target[0] != known[0]:
            raise UsageError(
                f"--target {reading.target[0]}: {typed} predicts {known[0]}: leave --target out"
            )
        found = reading.target[0] if reading.target else (known[0] if known else None)
        if found is None:
            raise UsageError("name the column of classes by -t")
        return str(found)

    @staticmethod
    def _delay(typed: str | None) -> int | None:
        if typed is None:
            return None
        late, by_time = amount(typed, "--delay")
        if by_time:
            raise UsageError(f"--delay {typed}: with classes it counts rows, as in --delay 100")
        return int(late)

    def _take_schema(self, model: Any, is_new: bool) -> None:
        """Let the model know how the columns of its file become features."""
        known, found = model.schema, self.stream.model_schema
        rules = known.rules or tuple(
            rule
            for rule in found.rules
            if rule.name != self.target and (is_new or rule.role != "category")
        )
        completed = replace(known or Schema(), rules=rules, targets=(self.target,))
        if completed != known:
            model.schema = completed

    def prediction_file(self, path: Path) -> ClassPredictionFile:
        """Return the file of predictions."""
        return ClassPredictionFile(path, self.stream.unit, self.run.sets.levels, self.stream.ids)

    def check_events(self, path: Path) -> None:
        """Complain of a file for events if there are none."""
        if self.run.drift is None:
            raise UsageError(f"--events {path} is for what --monitor finds: add it")

    def write(self, files: Files, found: ClassEvaluation) -> None:
        """Write the files that are written in the end, but for the model."""
        if files.curve is not None:
            write_curves(files.curve, {"": [found.scores.curve]})
        if files.report is not None:
            from sapwood.report.classes import write_class_report

            kinds = (own for name, own in self.stream.features.items() if str(name) != self.target)
            shown = self.described(kinds)
            write_class_report(files.report, found, self.model, settings=shown)
