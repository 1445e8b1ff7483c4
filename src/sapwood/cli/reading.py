"""A stream as it was typed: its name, how it is written, and which model it is for."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sapwood import load
from sapwood.cli import options
from sapwood.cli.failure import Terminal, UsageError
from sapwood.cli.models import targets_of
from sapwood.cli.options import input_field, option
from sapwood.cli.values import settings, split_spec
from sapwood.model import StoredModel
from sapwood.schema import PARTS, Calendar
from sapwood.streams.kafka_address import is_kafka
from sapwood.streams.opening import open_stream
from sapwood.streams.schema import nearest
from sapwood.streams.stream import MOST_ROWS, Chunk, DerivedStream, Kind, Position, Stream
from sapwood.validation import Label

__all__ = [
    "ClassReading",
    "Reading",
    "Writing",
    "is_classifier",
    "is_topic",
    "open_named",
    "report_missing",
]

MOST_SAMPLED = 1_000_000


@dataclass(frozen=True)
class Writing:
    """How a file is written, as it was typed."""

    target: list[str] = option(
        "The column to predict; repeat it for multi-target regression.",
        "NAME",
        default=[],
        names=("--target", "-t"),
    )
    id: list[str] = input_field(
        "Row identifier. Copied to the output, not used as a feature; joins labels that "
        "arrive later. May be repeated.",
        "NAME",
        default=[],
    )
    time_format: list[str] = input_field(
        "Format of a column of times, such as 'sold=%d.%m.%Y %H:%M' or "
        "sold=milliseconds; sold=none for a number. Most formats are detected.",
        "NAME=FORMAT",
        default=[],
    )
    decimal: str | None = input_field("Decimal mark, . or , - if it is not detected.", "MARK")
    thousands: str | None = input_field("Thousands separator: . , ' or a blank.", "MARK")
    encoding: str | None = input_field(
        "Text encoding, such as cp1252, if it is not detected.", "NAME"
    )
    header: bool | None = input_field(
        "Whether the first line of a CSV file has the column names; otherwise c1, c2, …",
        names=("--header/--no-header",),
        show_default=False,
    )
    format: options.Format | None = input_field(
        "csv, tsv, parquet, arrow, arff or jsonl, if the file name does not show it.", "FORMAT"
    )
    until_end: bool = input_field(
        "Stop at the present end of a topic; otherwise follow it until Ctrl-C.",
        default=False,
        names=("--until-end",),
    )
    kafka_config: Path | None = input_field(
        "Settings of the Kafka client, such as TLS and SASL: lines of name=value.",
        "FILE",
        show_default=False,
    )

    @property
    def first_target(self) -> str | None:
        """The target, or the first of several; None if none was named."""
        return self.target[0] if self.target else None

    @property
    def has_several(self) -> bool:
        """Whether several targets were named."""
        return len(self.target) > 1

    def check_one_target(self, why: str) -> None:
        """Complain of several targets, where there may be but one."""
        if self.has_several:
            named = " ".join(f"--target {name}" for name in self.target)
            raise UsageError(f"{named}: {why}; name one target")


@dataclass(frozen=True)
class Reading(Writing):
    """How a stream is to be read, as it was typed; and for which model, if that knows features.

    `sample` are the first rows of a topic, if a run resumes that has found columns by them; `keys`
    are the columns that identify series.
    """

    drop: list[str] = input_field("Leave a column out; may be repeated.", "NAME", default=[])
    categorical: list[str] = input_field(
        "Read the numbers of a column as categories; may be repeated.", "NAME", default=[]
    )
    time_parts: str = input_field(
        f"Parts of times to add as features: any of {','.join(PARTS)}, or none. Default: "
        "those of hour, weekday and season that vary.",
        "PARTS",
        default="",
    )
    timezone: str | None = input_field(
        "Time zone of the column of times, such as Europe/Berlin: times without an offset are "
        "local, and hour and weekday are those of local time.",
        "NAME",
    )
    holidays: str | None = input_field(
        "Add the public holidays of a country or a part of it, such as DE or DE-BY, as a feature.",
        "COUNTRY",
    )
    special_days: list[Path] = input_field(
        "Add special days as a feature, such as school holidays: a CSV file with the column "
        "date, or date and until; may be repeated.",
        "FILE",
        default=[],
    )
    time: str | None = input_field(
        "Column with the time of a row, for --delay, the weekly baseline and the report. "
        "Default, except for --delay: the first column of times.",
        "NAME",
    )
    sample_rows: int | None = input_field(
        "Rows from which the types of columns are inferred (1000). From a pipe, the first "
        "predictions are written after this many rows.",
        "ROWS",
        names=("--sample",),
        show_default=False,
    )
    schema: Path | None = input_field(
        "Read the columns as this saved model reads them; from a pipe, predictions are "
        "written at once.",
        "FILE",
    )
    model: Any = None
    sample: bytes | None = None
    keys: tuple[str, ...] = ()

    @property
    def setting_files(self) -> dict[str, Path | None]:
        """The files that are read for settings, by the options that name them."""
        days = {f"--special-days {path}": path for path in self.special_days}
        return {"--kafka-config": self.kafka_config, "--schema": self.schema, **days}

    def open(self, name: str | Sequence[str]) -> Stream:
        """Open a stream by its name, or by those of its files."""
        if not isinstance(name, str) and len(name) == 1:
            name = name[0]
        generated = _generated(name) if isinstance(name, str) else None
        if generated is not None and isinstance(name, str):
            self._check_generated(name, generated)
            return generated
        try:
            opened = open_stream(name, **self.read_options())
        except FileNotFoundError:
            if not isinstance(name, str) or os.path.basename(name) != name or "." in name:
                raise
            raise UsageError(
                f"{name}: neither a file nor a generator: {nearest(name, options.GENERATORS)}"
            ) from None
        if "pyarrow" in sys.modules:
            # It handles signals itself while it parses, and loses some that come at the end of it.
            sys.modules["pyarrow"].enable_signal_handlers(False)
        if self.has_several:
            from sapwood.streams.targets import SeveralTargets

            opened = SeveralTargets(opened, self.target)
        return opened if self.model is None else _Renamed.for_model(opened, self.model)

    def for_model(self, model: Any, typed: str) -> "Reading":
        """Return how a stream is read for a saved model: it predicts the target that it has.

        - `model`: the model; None if a new one is made.
        - Raises UsageError if another target was named.
        """
        if model is None:
            return self
        known = targets_of(model)
        named = " ".join(f"--target {name}" for name in self.target)
        _check_target(self.target, named, known, model, typed)
        return replace(self, model=model, target=self.target or list(known))

    def check_opened(self, stream: Stream, typed: str) -> None:
        """Complain of a stream whose target is not the one of the model that it is read for."""
        if self.model is not None:
            found = [*map(str, stream.targets)] or [*filter(None, [stream.target])]
            named = f"{stream.name}, of which the target is {', '.join(found)}"
            _check_target(found, named, targets_of(self.model), self.model, typed)

    def read_options(self) -> dict[str, Any]:
        """Return the equivalent arguments of `open_stream`."""
        categorical, known, known_formats = self.categorical, None, None
        calendar, known_calendars = self.calendar(), None
        lags = getattr(self.model, "lags", None)
        if self.sample_rows is not None and not 1 <= self.sample_rows <= MOST_SAMPLED:
            raise UsageError(f"--sample {self.sample_rows}: 1 to {MOST_SAMPLED} rows are expected")
        model, target = self.model, self.first_target
        if self.schema is not None:
            model = self._schema_model(self.schema)
            target = target or next(iter(targets_of(model)), None)
        if model is not None and model.features:
            categorical = [*categorical, *_declared_by(model)]
            known = _known_by(model)
            known |= dict.fromkeys(self.target[1:], "number")
            if calendar and calendar not in model.schema.calendars.values():
                raise UsageError(
                    "--timezone, --holidays, --special-days: the model has a time zone and special "
                    "days of its own: leave these options out, or train a new model"
                )
            known_formats = model.schema.formats
            known_calendars = model.schema.calendars
        return {
            "target": target,
            "drop": self.drop,
            "categorical": categorical,
            "time_formats": settings(self.time_format, "--time-format"),
            "time_parts": _parts(self.time_parts),
            "time": self.time,
            "known": known,
            "known_formats": known_formats,
            "known_calendars": known_calendars,
            "calendar": None if known else calendar,
            "decimal": self.decimal,
            "thousands": self.thousands,
            "encoding": self.encoding,
            "header": self.header,
            "ids": self.id,
            "keys": self.keys or tuple(map(str, getattr(lags, "by", ()))),
            "format": self.format,
            "until_end": self.until_end,
            "sample": self.sample,
            "sample_rows": self.sample_rows,
            "kafka_config": self.kafka_config,
        }

    def calendar(self) -> Calendar | None:
        """Return the time zone and the special days that were typed, if there are any."""
        try:
            found = Calendar.of(self.timezone, self.holidays, self.special_days)
        except ValueError as error:
            raise UsageError(str(error)) from None
        return found or None

    def _schema_model(self, path: Path) -> Any:
        """Return the saved model that --schema names."""
        if self.model is not None:
            raise UsageError(f"--schema {path}: the model reads columns by its own schema")
        return load(path)

    def _check_generated(self, name: str, stream: Stream) -> None:
        """Complain of options that a computed stream cannot use."""
        self.check_one_target(f"the target of {name} is {stream.target}")
        if self.first_target not in (None, stream.target) and self.model is None:
            raise UsageError(
                f"--target {self.first_target}: the target of {name} is {stream.target}"
            )
        for given in options.given_options(self):
            if given != "--target":
                named = given.replace("/", " or ")
                raise UsageError(f"{named} is for files, and {name} is computed: leave it out")


def is_classifier(model: Any) -> bool:
    """Whether a model predicts classes."""
    return getattr(model, "task", None) == "classes"


@dataclass(frozen=True)
class ClassReading(Reading):
    """How a stream is read whose target is a class: as a category among its features."""

    label: str = ""

    def read_options(self) -> dict[str, Any]:
        """Return the arguments of `open_stream`."""
        found = super().read_options()
        known = found["known"]
        if known is not None:
            known = {**known, self.label: "category"}
        categorical = [*found["categorical"], self.label]
        return {**found, "target": None, "categorical": categorical, "known": known}


def _check_target(
    targets: Sequence[str], named: str, known: Sequence[str], model: Any, typed: str
) -> None:
    """Complain of targets that are not those of a model, or that are features of it."""
    if targets and known and set(targets) != set(known):
        raise UsageError(
            f"{named}: {typed} predicts {', '.join(known)}: leave --target out, or train a new "
            "model for another target"
        )
    features = set(map(str, getattr(model, "features", ())))
    for name in targets:
        if name in features:
            raise UsageError(
                f"{named}: {name} is a feature of {typed}: name the column that it predicts, or "
                "train a new model"
            )


class _Renamed(DerivedStream):
    """A stream whose columns "0", "1", … are the features 0, 1, … of a model that learned arrays."""

    def __init__(self, stream: Stream, names: Mapping[str, int]) -> None:
        features = {names.get(name, name): kind for name, kind in stream.features.items()}
        rules = stream.model_schema.renamed(names).rules
        super().__init__(stream, features=features, rules=rules)
        self._names = names

    @classmethod
    def for_model(cls, stream: Stream, model: Any) -> Stream:
        """Return a stream whose columns are called as a model calls them."""
        names = {
            str(name): name
            for name in model.features
            if isinstance(name, int) and str(name) not in model.features
        }
        return cls(stream, names) if names else stream

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for chunk in self._stream.chunks(start, most_rows):
            columns = {self._names.get(name, name): chunk.columns[name] for name in chunk.columns}
            yield replace(chunk, columns=columns)

    @property
    def clock(self) -> Label | None:
        """That of what is read, called as the model calls it."""
        clock = self._stream.clock
        return self._names.get(clock, clock) if isinstance(clock, str) else clock


def is_topic(name: str | Sequence[str]) -> bool:
    """Whether a stream that was typed is a topic of Kafka."""
    return is_kafka(name) or (len(name) == 1 and is_kafka(name[0]))


def _declared_by(model: Any) -> list[str]:
    """Return the features that were declared categories of a model, or of one that it wraps."""
    parameters = model.parameters
    if "categorical" not in parameters:
        return _declared_by(parameters["online" if "online" in parameters else "model"])
    return list(map(str, parameters["categorical"]))


def _known_by(tree: Any) -> dict[str, Kind]:
    return {
        str(name): "category" if kind in ("category", "identifier") else "number"
        for name, kind in tree.feature_kinds.items()
    }


def _parts(typed: str) -> tuple[str, ...] | None:
    """Return the requested parts of times; None if the stream chooses them."""
    parts = tuple(dict.fromkeys(part.strip() for part in typed.split(",") if part.strip()))
    return (() if parts == ("none",) else parts) if parts else None


def _generated(name: str) -> Stream | None:
    """Return the generated stream of a name, None if it is that of a file."""
    if name.partition(":")[0] not in options.GENERATORS or os.path.exists(name):
        return None
    from sapwood.streams.generators import generator

    return generator(name)


def report_missing(terminal: Terminal, model: Any, stream: Stream) -> None:
    """Print which features of a model a stream lacks, if the model has features."""
    there = set(map(str, stream.features))
    known = getattr(model, "features", ()) if isinstance(model, StoredModel) else ()
    missing = [str(name) for name in known if str(name) not in there]
    if missing:
        terminal.say(f"sapwood: {stream.name} lacks {', '.join(missing)}: missing in all rows")


OWN_OPTIONS = ("target", "drop", "categorical", "time_parts", "time_format", "format")


def open_named(spec: str | Sequence[str], reading: Reading) -> Stream:
    """Open a stream whose own options may follow its name, those of many values joined by "+".

    Examples
    --------
    >>> open_named("friedman:rows=500", Reading()).length
    500
    """
    name, completed = with_own_options(spec, reading)
    return completed.open(name)


def with_own_options(
    spec: str | Sequence[str], reading: Reading
) -> tuple[str | Sequence[str], Reading]:
    """Return the name of a stream without the options that follow it, and how it is read with them."""
    if not isinstance(spec, str):
        return (spec, reading) if len(spec) > 1 else with_own_options(spec[0], reading)
    name, own = (spec, {}) if is_kafka(spec) else split_spec(spec)
    if not own or os.path.exists(spec) or _generated(spec) is not None:
        return spec, reading
    for key in own:
        if key not in OWN_OPTIONS:
            raise UsageError(f"{spec}: {key} is none of {', '.join(OWN_OPTIONS)}")
    changed: dict[str, Any] = {key: own[key] for key in ("format",) if key in own}
    changed |= {key: [own[key]] for key in ("target",) if key in own}
    changed.update({key: own[key].split("+") for key in ("drop", "categorical") if key in own})
    if "time_parts" in own:
        changed["time_parts"] = own["time_parts"].replace("+", ",")
    if "time_format" in own:
        changed["time_format"] = [own["time_format"].replace(":", "=", 1)]
    return name, replace(reading, **changed)
