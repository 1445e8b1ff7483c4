"""Streams of several targets: some of the columns of a stream, taken together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sapwood import validation
from sapwood.streams.schema import nearest
from sapwood.streams.stream import (
    MOST_ROWS,
    Chunk,
    DerivedStream,
    Position,
    Stream,
    StreamError,
)
from sapwood.validation import Label

__all__ = ["SeveralTargets", "check_distinct", "with_targets"]


def check_distinct(targets: Sequence[Label]) -> None:
    """Complain of a target that is named twice."""
    for place, name in enumerate(targets):
        if name in targets[:place]:
            raise StreamError(f"the target {validation.shown(name)} is named twice: leave one out")


class SeveralTargets(DerivedStream):
    """A stream of which further columns of numbers are targets, too.

    - `stream`: the rows; its target is the first.
    """

    def __init__(self, stream: Stream, targets: Sequence[str]) -> None:
        check_distinct(targets)
        self._further = tuple(targets[1:])
        read_as = {note.name: note.kind for note in stream.column_notes}
        for name in self._further:
            if name not in stream.features and name in read_as:
                raise StreamError(
                    f"{stream.name}: column {validation.shown(name)} is read as {read_as[name]}, so it "
                    "cannot be a target, too"
                )
            if name not in stream.features:
                known = map(str, read_as or stream.features)
                raise StreamError(
                    f"{stream.name} has no column {validation.shown(name)} to predict: "
                    f"{nearest(name, known)}"
                )
            kind = read_as.get(name, stream.features[name])
            if stream.features[name] != "number" or kind == "time":
                words = "times" if kind == "time" else "categories"
                raise StreamError(
                    f"{stream.name}: column {validation.shown(name)} holds {words}, and a target is a "
                    "number"
                )
        super().__init__(
            stream,
            features={
                name: kind for name, kind in stream.features.items() if name not in self._further
            },
            target=", ".join(targets),
            column_notes=tuple(
                replace(note, is_target=True, warnings=()) if note.name in self._further else note
                for note in stream.column_notes
            ),
            targets=tuple(targets),
        )

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield the rows from a position on."""
        for chunk in self._stream.chunks(start, most_rows):
            yield with_targets(chunk, self._further)


def with_targets(chunk: Chunk, further: Sequence[str]) -> Chunk:
    """Return a chunk of which further columns are targets, behind its own."""
    own = [np.asarray(chunk.columns[name], np.float64) for name in further]
    first = np.empty(0) if chunk.y is None else chunk.y
    columns = {name: column for name, column in chunk.columns.items() if name not in further}
    return replace(chunk, columns=columns, y=np.column_stack([first, *own]))
