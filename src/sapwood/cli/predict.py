"""`sapwood predict`: a prediction for each row, in order, as rows come."""

import time
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.files import check_files, is_stdout
from sapwood.cli.models import check_levels
from sapwood.cli.outputs import BadRowFile, GrowingFile, bound_columns, bound_names, named
from sapwood.cli.reading import (
    ClassReading,
    Reading,
    Writing,
    is_classifier,
    is_topic,
    report_missing,
)
from sapwood.cli.values import amount
from sapwood.lags.forecasting import lost_lags
from sapwood.rows.encoded import EncodedColumns
from sapwood.streams.kafka_address import is_kafka
from sapwood.streams.labelled import keys_of
from sapwood.streams.stream import BadRowError, Chunk, Position, Stream

if TYPE_CHECKING:
    import numpy as np

    from sapwood.cli.kafka_output import PredictionTopic
    from sapwood.evaluate.prequential import OnBadRow
    from sapwood.streams.stream import Column

__all__ = ["predict"]


def predict(
    model: options.SavedModel,
    stream: options.StreamArgument = ["-"],  # noqa: B006 - typer wants a list
    *,
    output: options.Output = Path("-"),
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Send predictions to a topic of Kafka instead: kafka://HOST:PORT/TOPIC.",
        ),
    ] = None,
    writing: Writing,
    on_bad_row: options.OnBadRowOption = "error",
    bad_rows: options.BadRows = None,
    interval: options.Interval = [],  # noqa: B006 - typer wants a list
    minimum: options.Minimum = None,
    maximum: options.Maximum = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = "60s",
    quiet: options.Quiet = False,
) -> None:
    """Predict each row of a stream, in order, as rows arrive.

    Columns that the model does not know are ignored, those that the stream lacks count as missing.
    A row that cannot be read, if it is not to stop all, gets an empty line. For a model with lags,
    the rows follow those that it has learned; with --target, their own targets become lags of
    the rows behind them.
    """
    terminal = Terminal(stderr=True, silent=quiet)
    with failing_in_one_line(terminal, extra="cli"):
        growing = {"--output": output, "--bad-rows": bad_rows}
        check_files(
            {},
            growing,
            read=[model, *stream],
            format=writing.format,
            checkpoint=checkpoint,
            settings={"--kafka-config": writing.kafka_config},
        )
        options.check_bad_rows(bad_rows, on_bad_row)
        _check_outputs(to, output, checkpoint, stream)
        loaded = load(model)
        _check_lagged(loaded, writing, model)
        if interval:
            check_levels(loaded.model if hasattr(loaded, "lags") else loaded, interval)
        reading = _reading(writing, loaded)
        if to is not None and not is_topic(stream):
            reading = replace(reading, kafka_config=None)  # it is for predictions alone
        saving = None
        if checkpoint is not None:
            saving = _Saving(checkpoint, every, zlib.crc32(model.read_bytes()))
            if is_topic(stream):
                reading = replace(reading, sample=saving.file.sample())
        rows = reading.open(stream)
        report_missing(terminal, loaded, rows)
        request = _Request(
            loaded,
            tuple(sorted(set(interval))),
            options.limits(minimum, maximum),
            label=getattr(reading, "label", None),
        )
        _check_request(request, model, to)
        written = _output(output, to, rows, request, writing.kafka_config)
        left_out = None if bad_rows is None else BadRowFile(bad_rows)
        run = _Predicting(request, rows, written, left_out, on_bad_row, saving)
        run.follow(terminal)
        run.report(terminal)


def _reading(writing: Writing, loaded: Any) -> Reading:
    """Return how the rows for a model are read; labels of classes are read for its lags."""
    if not (writing.target and is_classifier(loaded)):
        return Reading(**vars(writing), model=loaded)
    label = writing.target[0]
    if label != loaded.lags.target:
        raise UsageError(
            f"--target {label}: the lags of the model are of {loaded.lags.target}: name that, or "
            "none"
        )
    return ClassReading(**{**vars(writing), "target": []}, model=loaded, label=label)


def _check_request(request: "_Request", model: Path, to: str | None) -> None:
    """Complain of places and limits that the predictions of a model cannot have."""
    if request.class_columns and to is not None:
        raise UsageError(f"--to {to}: {model} predicts classes, name a file by --output")
    if request.class_columns and request.limits is not None:
        raise UsageError(f"--min, --max: {model} predicts classes, leave them out")
    if request.targets and to is not None:
        raise UsageError(f"--to {to}: {model} has several targets, name a file by --output")


def _check_lagged(loaded: Any, writing: Writing, model: Path) -> None:
    """Complain of other targets than those of a model's lags."""
    if writing.target and not hasattr(loaded, "lags"):
        raise UsageError(f"--target {writing.first_target}: {model} has no lags, so leave it out")
    target = loaded.lags.target if hasattr(loaded, "lags") else ""
    if isinstance(target, str):
        writing.check_one_target("lags are those of one")
    elif writing.target and tuple(writing.target) != target:
        targets_of_lags = ", ".join(map(str, target))
        raise UsageError(
            f"--target {writing.first_target}: the lags of the model are of {targets_of_lags}: name all of "
            "them in this order, or none"
        )


def _check_outputs(
    to: str | None, output: Path, checkpoint: Path | None, stream: list[str]
) -> None:
    """Complain of places for predictions that cannot be meant."""
    if to is not None:
        if not is_kafka(to):
            raise UsageError(
                f"--to {to}: kafka://HOST:PORT/TOPIC is expected; --output names files"
            )
        if not is_stdout(output):
            raise UsageError(f"--to {to}: predictions go to --output {output} already, name one")
        if to in stream:
            raise UsageError(f"--to {to}: the same topic is read, name another")
    elif checkpoint is not None and (is_stdout(output) or _is_no_file(output)):
        raise UsageError(f"--checkpoint: {output} cannot be resumed, name a file by --output")


def _is_no_file(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _output(
    output: Path, to: str | None, rows: Stream, request: "_Request", kafka_config: Path | None
) -> "_Predictions | PredictionTopic":
    if to is None:
        names = request.class_columns or [
            column
            for name in (request.targets or (None,))
            for column in (*named(["prediction"], name), *bound_names(request.levels, name))
        ]
        return _Predictions(output, [*rows.ids, *names], rows.ids)
    from sapwood.cli.kafka_output import PredictionTopic
    from sapwood.streams.kafka_config import config_of

    return PredictionTopic(to, rows, request.levels, config_of(kafka_config))


@dataclass
class _Request:
    """A model, and the requested levels of prediction intervals."""

    model: Any
    levels: tuple[float, ...]
    limits: tuple[float, float] | None = None
    lost: str | None = None  # lags that were not known, in words
    label: str | None = None  # the column of classes, if lags are taken of it

    @property
    def targets(self) -> tuple[Any, ...]:
        """The names of several targets; none of one."""
        return tuple(self.model.targets) if getattr(self.model, "several_targets", False) else ()

    @property
    def class_columns(self) -> list[str]:
        """The columns of a classifier: the class, and the probability of each; none of others."""
        if not is_classifier(self.model):
            return []
        return ["prediction", *(f"probability {label}" for label in self.model.classes)]

    def predict(self, chunk: Chunk, rows: int) -> list[list[float | str]]:
        """Return the columns for the first rows of a chunk: predictions, and bounds.

        A model with lags remembers them.
        """
        given: Any
        columns, given = chunk.part(0, rows)
        if self.label is not None:
            given = columns[self.label]
            columns = {name: each for name, each in columns.items() if name != self.label}
        elif chunk.y is None:
            given = None
        columns = EncodedColumns(columns)  # the stream has read them by the model's schema
        if not hasattr(self.model, "lags"):
            return self._held(self._columns_of(self.model, columns))
        plan = self.model.lags.plan(columns, given)
        found = self._columns_of(self.model.model, plan.features)
        if self.lost is None and given is None:
            self.lost = lost_lags(plan, self.model.lags)
        plan.push()
        return self._held(found)

    def _held(self, found: list[list[float | str]]) -> list[list[float | str]]:
        """Return predictions and bounds held within the limits; what is not known is empty."""
        if self.limits is None:
            return found
        low, high = self.limits
        return [
            [own if isinstance(own, str) else min(max(own, low), high) for own in column]
            for column in found
        ]

    def _columns_of(self, model: Any, columns: "Mapping[Any, Column]") -> list[list[float | str]]:
        if self.class_columns:
            classes = model.predict_many(columns, record=False).tolist()
            shares = model.predict_proba_many(columns, record=False).T.tolist()
            return [classes, *shares]
        if not self.levels:
            found = model.predict_many(columns)
            if isinstance(found, Mapping):
                return [found[name].tolist() for name in self.targets]
            return [found.tolist()]
        predictions, bounds = model.predict_intervals_many(columns)
        places = [model.levels.index(level) for level in self.levels]
        if not self.targets:
            return [predictions.tolist(), *bound_columns(bounds[:, places])]
        written: list[list[float | str]] = []
        for place in range(len(self.targets)):
            written += [
                predictions[:, place].tolist(),
                *bound_columns(bounds[:, place, places]),
            ]
        return written


class _Predictions(GrowingFile):
    """Predictions, those of a row a line, behind its ids; bounds are behind them."""

    def __init__(self, path: Path, columns: list[str], ids: tuple[str, ...]) -> None:
        super().__init__(path, columns)
        self._ids, self._empty = ids, [""] * len(columns)

    def write(self, chunk: Chunk, predicted: list[list[float | str]], bad: bool = True) -> None:
        """Write the predictions of a chunk, with an empty line where a row is bad."""
        rows: list[Any] = [list(row) for row in zip(*predicted, strict=True)]
        if self._ids:
            rows = [[*key, *row] for key, row in zip(keys_of(chunk.ids), rows, strict=False)]
        for each in reversed(chunk.bad if bad else ()):
            rows.insert(each.after, self._empty)
        if len(self._empty) > 1:
            self.write_rows(rows)
        else:
            self.write_lines([repr(row[0]) if row[0] != "" else "" for row in rows])
        self.flush()


class _Saving:
    """Where predicting is saved, and how often."""

    def __init__(self, path: Path, every: str, model: int) -> None:
        from sapwood.evaluate.checkpoint import CheckpointFile

        self.file: CheckpointFile = CheckpointFile(path)
        self.every, self.by_time = amount(every, "--every")
        self.model = model


@dataclass
class _Predicting:
    """Predictions of a stream, from where an earlier run was saved."""

    request: _Request
    stream: Stream
    written: "_Predictions | PredictionTopic"
    left_out: BadRowFile | None
    on_bad_row: "OnBadRow"
    saving: _Saving | None
    position: Position | None = None
    read: int = 0
    rejected: int = 0

    @property
    def model(self) -> Any:
        """The model as it is now: one with lags remembers rows."""
        return self.request.model

    def to_state(self) -> "tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]":
        """Return what `restore` needs, but for the model."""
        from sapwood.evaluate.run import sample_arrays

        header = {"position": self.position, "predicted": self.read, "refused": self.rejected}
        return header, sample_arrays(self.stream)

    def restore(self, header: dict[str, Any], arrays: "Mapping[str, np.ndarray[Any, Any]]") -> None:
        """Resume from what `to_state` returned."""
        from sapwood.evaluate.run import position_of

        self.position = position_of(header["position"])
        self.read, self.rejected = int(header["predicted"]), int(header["refused"])

    def follow(self, terminal: Terminal) -> None:
        """Predict all rows."""
        with ExitStack() as stack:
            lengths: Mapping[str, int] = {}
            if self.saving is not None:
                stack.enter_context(self.saving.file.hold())
                lengths = self._resume(self.saving, terminal)
            for output in self._outputs:
                stack.callback(output.open(lengths.get(output.path)).close)
            self._loop()

    def report(self, terminal: Terminal) -> None:
        """Print how many rows were predicted, and which lags were not known."""
        if self.request.lost is not None:
            recursive = ", or use `sapwood forecast`, whose predictions become lags"
            terminal.say(
                f"sapwood: {self.request.lost}: name --target if the file has targets"
                + ("" if self.request.class_columns else recursive)
            )
        if self.read == 0:
            terminal.say(f"sapwood: {self.stream.name} has no rows: nothing was predicted")
        predicted = self.read - self.rejected
        terminal.say(
            f"rows: {self.read:,} read, {predicted:,} predicted, {self.rejected:,} rejected"
        )

    @property
    def _outputs(self) -> "list[_Predictions | PredictionTopic | BadRowFile]":
        return [self.written, *([] if self.left_out is None else [self.left_out])]

    def _identity(self) -> dict[str, Any]:
        """Return what is predicted of what: a checkpoint of anything else is rejected."""
        has_lags = self.saving is not None and hasattr(self.model, "lags")
        return {
            "stream": self.stream.fingerprint,
            "features": {str(name): kind for name, kind in self.stream.features.items()},
            "ids": list(self.stream.ids),
            "interval": list(self.request.levels),
            "outputs": [output.path for output in self._outputs],
            "model": self.saving.model if self.saving is not None and has_lags else None,
        }

    def _resume(self, saving: _Saving, terminal: Terminal) -> Mapping[str, int]:
        """Resume from the checkpoint, if there is one; return how long files were."""
        from sapwood.evaluate.checkpoint import CheckpointError

        saved = saving.file.load(self.model)
        if saved is None:
            return {}
        for name, value in self._identity().items():
            if saved.identity.get(name) != value:
                raise CheckpointError(
                    f"{saving.file.path} belongs to another run, whose {name} differed: name "
                    "another file, or remove it to start over"
                )
        saved.resume(self)
        if hasattr(self.model, "lags"):
            self.request = replace(self.request, model=saved.model)
        terminal.say(f"resuming after {self.read:,} rows, from {saving.file.path}")
        return saved.outputs

    def _loop(self) -> None:
        waiting, saved_at = True, self._mark()
        chunks = self.stream.chunks(self.position)
        try:
            while True:
                waiting = True
                chunk = next(chunks, None)
                waiting = False
                if chunk is None:
                    break
                self._take(chunk)
                if self.saving is not None and self._mark() - saved_at >= self.saving.every:
                    self._save()
                    saved_at = self._mark()
        except KeyboardInterrupt:
            if waiting:
                self._save()
            raise
        self._save()

    def _mark(self) -> float:
        by_time = self.saving is None or self.saving.by_time
        return time.monotonic() if by_time else self.read

    def _take(self, chunk: Chunk) -> None:
        stopped = chunk.bad[0] if chunk.bad and self.on_bad_row == "error" else None
        good = len(chunk) if stopped is None else stopped.after
        predicted = self.request.predict(chunk, good)
        if stopped is not None:
            self.written.write(chunk, predicted, bad=False)
            raise BadRowError(stopped)
        self.written.write(chunk, predicted)
        if self.left_out is not None:
            self.left_out.write_bad(chunk.bad)
        self.read += len(chunk) + len(chunk.bad)
        self.rejected += len(chunk.bad)
        self.position = chunk.next

    def _save(self) -> None:
        if self.saving is not None and self.position is not None:
            lengths = {output.path: output.secure() for output in self._outputs}
            self.saving.file.save(self, self._identity(), lengths)
