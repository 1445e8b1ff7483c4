"""The work of workers: read their pieces, learn them, and send back the changes of the model.

An engine has to run these functions only. Their arguments and results can be pickled, and they keep
no state but open files.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from operator import add
from typing import Any

import numpy as np

from sapwood import model as models
from sapwood.merge import Delta, ShardLearner
from sapwood.merge.delta import joined_scores, learned_and_scored
from sapwood.merge.layout import SCORES
from sapwood.rows.encoded import EncodedColumns
from sapwood.rows.labels import Labels
from sapwood.rows.targets import Targets
from sapwood.scale.sources import BYTES, GENERATED, ROWS, Piece, Source, open_file
from sapwood.streams.stream import BadRow, Chunk, Position, Unit
from sapwood.streams.targets import with_targets
from sapwood.validation import Label

__all__ = ["PieceRead", "ShardDone", "learn_first", "learn_shard", "sum_deltas"]

MOST_OPEN = 16  # files

Names = tuple[Label, ...] | None


@dataclass(frozen=True)
class PieceRead:
    """Where a piece really began and ended, and what was in it.

    - `start`, `end`: where its first row begins, and the first one behind it; in the unit of the
      file.
    - `rows`, `lines`: how many rows were read, bad ones among them; and lines of a text.
    """

    piece: Piece
    start: int
    end: int
    rows: int
    lines: int


@dataclass
class ShardDone:
    """What a worker sends back.

    - `content`: a delta; or a model, if it was the first shard of all; nothing if a bad row has
      stopped it.
    - `bad`: rows left out, each with the place of its piece; lines are counted from 1 in a piece
      that does not begin its file.
    - `learned`, `without_target`: how many rows were learned, and how many have no target.
    - `scores`: the sums of errors of the first shard of all; a delta has its own.
    """

    content: bytes = b""
    pieces: list[PieceRead] = field(default_factory=list)
    bad: list[tuple[int, BadRow]] = field(default_factory=list)
    learned: int = 0
    without_target: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    scores: Any = field(default_factory=lambda: np.zeros(len(SCORES)))


def learn_shard(
    snapshot: bytes, shard: int, source: Source, pieces: list[Piece], skip_bad: bool
) -> ShardDone:
    """Learn the rows of some pieces from a snapshot, and return the delta.

    - `skip_bad`: whether rows that cannot be used are left out; else the first of them stops all.
    """
    begun = time.perf_counter()
    learner = ShardLearner(snapshot, shard)
    done = ShardDone(seconds={"load": time.perf_counter() - begun})
    if _learn_all(learner, source, pieces, skip_bad, done):
        begun = time.perf_counter()
        done.content = learner.delta().to_bytes()
        done.seconds["delta"] = time.perf_counter() - begun
    return done


def sum_deltas(deltas: list[bytes]) -> bytes:
    """Return the sum of some deltas, in their order."""
    return reduce(add, map(Delta.from_bytes, deltas)).to_bytes()


def learn_first(model: bytes, source: Source, pieces: list[Piece], skip_bad: bool) -> ShardDone:
    """Learn the first rows of all as ever, growing, and return the model."""
    done = ShardDone()
    learner = _ScoredTree(models.from_bytes(model))
    if _learn_all(learner, source, pieces, skip_bad, done):
        done.content, done.scores = learner.tree.to_bytes(), learner.scores
    return done


class _ScoredTree:
    """A tree that is scored by its predictions of rows before it learns them."""

    def __init__(self, tree: Any) -> None:
        self.tree, self.scores = tree, np.zeros(len(SCORES))

    def predict_learn_many(self, columns: Any, y: Targets) -> None:
        _, scores = learned_and_scored(self.tree, columns, y)
        self.scores = joined_scores(self.scores, scores)


def _learn_all(
    learner: Any, source: Source, pieces: list[Piece], skip_bad: bool, done: ShardDone
) -> bool:
    """Learn pieces, one after the other; false if a bad row has stopped it."""
    reading = learning = 0.0
    names = tuple(source.reading["targets"]) or None
    begun = time.perf_counter()
    try:
        for place, piece in enumerate(pieces):
            read = _PieceReader(source, piece)
            for chunk in read.chunks():
                reading += time.perf_counter() - begun
                begun = time.perf_counter()
                rejected = _learn(learner, chunk, names, read.unit, done)
                done.bad += [(place, row) for row in sorted([*chunk.bad, *rejected], key=_number)]
                learning += time.perf_counter() - begun
                begun = time.perf_counter()
                if done.bad and not skip_bad:
                    done.pieces.append(read.progress())
                    return False
            done.pieces.append(read.progress())
            reading += time.perf_counter() - begun
            begun = time.perf_counter()
    finally:
        done.seconds.update(read=reading, learn=learning)
    return True


def _number(row: BadRow) -> int:
    return row.number


def _learn(learner: Any, chunk: Chunk, names: Names, unit: Unit, done: ShardDone) -> list[BadRow]:
    """Learn the rows of a chunk that have a target; return those that the model rejects.

    - `names`: of several targets.
    """
    if chunk.y is None or not len(chunk):
        return []
    columns, y, numbers = chunk.columns, chunk.y, chunk.numbers
    there = ~np.isnan(y.reshape(len(y), -1)).all(axis=1)
    if not there.all():
        done.without_target += int(np.count_nonzero(~there))
        columns = {name: _chosen(column, there) for name, column in columns.items()}
        y, numbers = y[there], numbers[there]
    try:
        learner.predict_learn_many(EncodedColumns(columns), Targets(names, y))
        done.learned += len(y)
        return []
    except ValueError:
        rows = replace(chunk, columns=columns, y=y, numbers=numbers)
        return _learn_singly(learner, rows, names, unit, done)


def _learn_singly(
    learner: Any, chunk: Chunk, names: Names, unit: Unit, done: ShardDone
) -> list[BadRow]:
    """Learn rows one by one, because the model rejects some of them."""
    rejected = []
    for row in range(len(chunk)):
        columns, y = chunk.part(row, row + 1)
        try:
            learner.predict_learn_many(EncodedColumns(columns), Targets(names, y))
            done.learned += 1
        except ValueError as error:
            rejected.append(BadRow(chunk.source, unit, int(chunk.numbers[row]), str(error)))
    return rejected


def _chosen(column: Any, rows: Any) -> Any:
    if isinstance(column, np.ndarray | Labels):
        return column[rows]
    return [value for value, good in zip(column, rows.tolist(), strict=True) if good]


class _PieceReader:
    """Reads the chunks of a piece, and knows where they began and ended."""

    def __init__(self, source: Source, piece: Piece) -> None:
        self._piece, self._file = piece, source.files[piece.file]
        self._features, self._further = list(source.features), source.reading["targets"][1:]
        self._stream = _opened(self._file.path, source.reading)
        self.unit: Unit = self._stream.unit
        self._rows = self._lines = 0
        self._start, self._end = piece.start, piece.end

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, with the features of the source in their order."""
        for chunk in self._own_chunks():
            self._rows += len(chunk) + len(chunk.bad)
            columns = {name: chunk.columns[name] for name in [*self._features, *self._further]}
            own = replace(chunk, columns=columns)
            yield with_targets(own, self._further) if self._further else own

    def _own_chunks(self) -> Iterator[Chunk]:
        if self._file.unit == BYTES:
            yield from self._of_bytes()
        elif self._file.unit == ROWS:
            yield from self._of_rows()
        else:
            yield from self._stream.chunks()

    def _of_bytes(self) -> Iterator[Chunk]:
        piece = self._piece
        position: Position = self._stream.between(piece.start, piece.end, piece.exact)
        first_line = position["line"]
        self._start = self._end = position["byte"]
        for chunk in self._stream.chunks(position):
            self._end = chunk.next["byte"]
            self._lines = chunk.next["line"] - first_line
            yield chunk
        if piece.start == 0:
            self._start, self._lines = 0, self._lines + first_line - 1
        if piece.end >= self._file.size:
            self._end = self._file.size

    def _of_rows(self) -> Iterator[Chunk]:
        piece = self._piece
        made = self._stream.at_row(piece.start) if self._file.groups else {"row": piece.start}
        for chunk in self._stream.chunks(made):
            stop = int(np.searchsorted(chunk.numbers, piece.end, "right"))
            bad = [row for row in chunk.bad if row.number <= piece.end]
            columns, y = chunk.part(0, stop)
            numbers = chunk.numbers[:stop]
            yield replace(chunk, columns=columns, y=y, numbers=numbers, bad=bad)
            if chunk.done >= piece.end:
                return

    def progress(self) -> PieceRead:
        """Return what was read."""
        return PieceRead(self._piece, self._start, self._end, self._rows, self._lines)


def _opened(path: str, reading: dict[str, Any]) -> Any:
    """Return a stream of a file, which stays open as long as it is the same file."""
    if reading["format"] == GENERATED:
        return _kept(path, json.dumps(reading), 0, 0)
    status = os.stat(path)
    return _kept(path, json.dumps(reading), status.st_mtime_ns, status.st_size)


@lru_cache(MOST_OPEN)
def _kept(path: str, reading: str, changed: int, size: int) -> Any:
    return open_file(path, json.loads(reading))
