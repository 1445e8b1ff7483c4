"""Rounds: workers learn shards from a snapshot, the driver sums what they bring, the tree grows.

The first rows of all are learned by one worker, as ever. Then each round has a share of the rows so
far, so that no leaf waits long for its split, and the number of rounds grows with the logarithm of
the rows. The result depends on the rows, on the number of workers and on nothing else: not on the
engine, not on who was faster, not on workers that were lost on the way.

The members of a forest learn all rows, each worker some of them: see `sapwood.scale.members`.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Literal

from sapwood import model as models
from sapwood import validation
from sapwood.deprecation import deprecated
from sapwood.ensemble.forest import ForestRegressor
from sapwood.merge import Delta, MergeError, take_snapshot
from sapwood.merge.applying import take_in
from sapwood.merge.delta import joined_scores
from sapwood.merge.snapshot import LEAST_ROWS, check_mergeable, digest_of
from sapwood.model import StoredModel
from sapwood.scale.checkpoint import load_checkpoint, save_checkpoint
from sapwood.scale.engines import Engine
from sapwood.scale.engines import engine as opened
from sapwood.scale.members import Members
from sapwood.scale.reports import RoundReport, Trained
from sapwood.scale.sources import Cursor, Piece, Source, survey
from sapwood.scale.worker import ShardDone, learn_first, learn_shard, sum_deltas
from sapwood.storage.atomic import StrPath
from sapwood.streams.stream import BadRow, BadRowError, StreamError
from sapwood.tree.regressor import HoeffdingTreeRegressor

__all__ = ["RoundReport", "Rounds", "Trained", "train"]

SHARE = 0.1
"""Of the rows so far, that a round has."""
LATER, LATER_SHARE = 1_000_000, 5.0
"""From so many rows on a round has so many times that share, as trees grow slowly by then."""
FIRST, LEAST = 1_000_000, 2_000
"""Rows that one worker learns first, and least rows of a round. A round has an overhead of about
40 ms for the driver and each worker. A worker learns 60,000 rows in that time, so a round pays off
when it has several times as many: from about a million rows on."""
FIRST_OF_FORESTS, LAST_OF_FORESTS = 10_000, 5_000
"""Of a forest: rows that one worker learns with all members before they are shared out, and, about,
at the end, by which it finds how they are weighed."""
FIRST_AT_ONCE = 250_000
"""Of those that one worker learns, at once: so many, then as many as it has learned before."""
MOST_SUMMED = 8
"""Deltas that one sums: the driver, or workers for it if there are more."""
MOST_UNPACKED = 4
"""Deltas that the driver unpacks at once."""
MOST_LOSSES = 5
"""How often workers may be lost in one round."""
LOSSES = ("KilledWorker", "NodeDiedError", "OwnerDiedError", "WorkerCrashedError")
"""Names of the errors by which Dask and Ray report a lost worker, after their own retries."""


class Rounds:
    """The driver of distributed training; it reads no rows.

    Parameters
    ----------
    model : HoeffdingTreeRegressor, ForestRegressor, or callable
        The model to train, which need not be empty; or a function that makes one of a `Source`.
    name : str, path, or sequence of them
        What workers read, as `sapwood.streams.open_stream` opens it.
    workers : int
        The number of shards of a round, or of parts of a forest.
    engine : Engine
        What runs them.
    read_options : dict, optional
        Further arguments of `open_stream`, such as the target; or "targets", the names of several.
    share : float
        Of the rows so far, that a round has; five times as many from a million rows on.
    first : int
        Rows that one worker learns before they are shared out, growing as ever; those of a
        forest are 10,000 at the most.
    on_bad_row : {"error", "skip"}
        Whether a row that cannot be used stops all, or is counted and left out.
    checkpoint : str or path, optional
        A file from which training resumes after the driver was lost.
    every : float
        Seconds between two checkpoints; 0 saves after each round.
    listener : callable, optional
        Called with a `RoundReport` after each round.
    on_bad_rows : callable, optional
        Called with the rows that a round has left out.
    wishes : dict, optional
        The old name of `read_options`.
    """

    def __init__(
        self,
        model: HoeffdingTreeRegressor | ForestRegressor | Callable[[Source], Any],
        name: Any,
        *,
        workers: int,
        engine: Engine,
        read_options: dict[str, Any] | None = None,
        share: float = SHARE,
        first: int = FIRST,
        on_bad_row: Literal["error", "skip"] = "error",
        checkpoint: StrPath | None = None,
        every: float = 60.0,
        listener: Callable[[RoundReport], object] | None = None,
        on_bad_rows: Callable[[list[BadRow]], object] | None = None,
        wishes: dict[str, Any] | None = None,
    ) -> None:
        if wishes is not None:
            deprecated("wishes=", "read_options=")
            read_options = wishes
        self._workers = validation.whole(workers, "workers", 1, 2**16)
        self._share = validation.between(share, "share", 0.0, 1.0)
        self._first = validation.whole(first, "first", LEAST_ROWS, 2**53)
        self._engine, self._skip_bad = engine, on_bad_row == "skip"
        self._checkpoint, self._every = checkpoint, every
        self._listener, self._on_bad_rows = listener, on_bad_rows
        self._lost = 0
        self.source: Source = self._call(survey, name, read_options or {})
        if self.source.reading["target"] is None:
            raise StreamError(f"{self.source.name}: name the column to predict")
        tree: Any = model if isinstance(model, StoredModel) else model(self.source)
        self._members: Members | None = None
        if type(tree) is ForestRegressor:
            self._members = Members(self._workers)
            self._first = min(self._first, FIRST_OF_FORESTS)
        elif type(tree) is not HoeffdingTreeRegressor or tree._kernel.rows >= LEAST_ROWS:
            check_mergeable(tree)
        self._identity = {
            "source": self.source.to_header(),
            "workers": self._workers,
            "share": self._share,
            "first": self._first,
            "bad rows": on_bad_row,
            "model": repr(tree.parameters),
        }
        self._cursor = Cursor()
        self.trained = Trained(tree)
        self._saved_at = time.perf_counter()
        self._resume()

    # -- the way through the source -----------------------------------------------------------

    def run(self) -> Trained:
        """Learn all that is left of the source."""
        begun = time.perf_counter()
        while not self.source.is_read(self._cursor):
            self._next_round()
            self._save(at_once=False)
        self._rejoin()
        self._save(at_once=True)
        self.trained.seconds = time.perf_counter() - begun
        return self.trained

    def _next_round(self) -> None:
        rows = self._rows
        if rows < self._first:
            self._learn_first(min(int(self._first - rows), max(FIRST_AT_ONCE, int(rows))))
        elif self._members is None:
            share = self._share * (LATER_SHARE if rows >= LATER else 1.0)
            self._learn_shards(max(LEAST, int(share * rows)))
        elif (left := self.source.rows_behind(self._cursor)) <= LAST_OF_FORESTS:
            self._rejoin()
            self._learn_first(left + LAST_OF_FORESTS)
        else:
            wanted = max(FIRST_AT_ONCE, int(self._share * LATER_SHARE * rows))
            self._learn_members(min(wanted, left - LAST_OF_FORESTS))

    @property
    def _rows(self) -> float:
        """How many rows the model has learned."""
        members = self._members
        if members is not None and members.parts:
            return members.rows
        return float(self.trained.model._kernel.rows)

    def _learn_shards(self, wanted: int) -> None:
        """Let workers learn a shard each of the next rows, and the tree grow."""
        begun, self._lost = time.perf_counter(), 0
        model = self.trained.model
        lists, _ = self.source.cut(self._cursor, wanted, self._workers)
        snapshot = take_snapshot(model, self.trained.rounds)
        requested = time.perf_counter()
        done = self._collected(snapshot, lists)
        answered = time.perf_counter()
        self._take_in(snapshot, done)
        driver = (requested - begun) + (time.perf_counter() - answered)
        rows = sum(each.learned for each in done)
        self._end_round(begun, driver, done, rows=rows, bytes_out=len(snapshot) * len(done))

    def _learn_members(self, wanted: int) -> None:
        """Let all workers learn the next rows, each with some members of the forest."""
        begun, self._lost = time.perf_counter(), 0
        members = self._members
        assert members is not None
        members.part_if_whole(self.trained.model)
        pieces, _ = self.source.cut(self._cursor, wanted, 1)
        sent = sum(map(len, members.parts))
        requested = time.perf_counter()
        calls = members.calls(self.source, pieces[0], self._skip_bad)
        found = self._all_of(calls)
        answered = time.perf_counter()
        done = [found[place] for place in range(len(calls))]
        self._count(done[:1])
        members.take(done, self._engine.name)
        self.trained.scores = joined_scores(self.trained.scores, done[0].scores)
        driver = (requested - begun) + (time.perf_counter() - answered)
        self._end_round(begun, driver, done, rows=done[0].learned, bytes_out=sent)

    def _rejoin(self) -> None:
        """Let the members of a forest be one forest again, if they are apart."""
        if self._members is not None and self._members.parts:
            self.trained.model = self._members.whole(self.trained.model)

    def _end_round(
        self, begun: float, driver: float, done: list[ShardDone], *, rows: int, bytes_out: int
    ) -> None:
        """Count a round, and report it to the listener."""
        self.trained.rounds += 1
        if self._listener is None:
            return
        members = self._members
        leaves = self.trained.model.n_leaves if members is None else members.leaves
        seconds: Counter[str] = Counter()
        for each in done:
            seconds.update(each.seconds)
        self._listener(
            RoundReport(
                round=self.trained.rounds - 1,
                rows=rows,
                leaves=leaves,
                total_rows=int(self._rows),
                done=self._share_read(),
                bytes_out=bytes_out,
                bytes_in=sum(len(each.content) for each in done),
                driver_seconds=driver,
                seconds=time.perf_counter() - begun,
                worker_seconds=dict(seconds),
                lost=self._lost,
            )
        )

    def _share_read(self) -> float:
        files, cursor = self.source.files, self._cursor
        sizes = [file.size / file.per_row for file in files]
        read = sum(sizes[: cursor.file])
        if cursor.file < len(files):
            read += cursor.at / files[cursor.file].per_row
        return read / max(1.0, sum(sizes))

    def _learn_first(self, wanted: int) -> None:
        """Let one worker learn the next rows, as ever."""
        pieces = self.source.cut(self._cursor, wanted, 1)[0][0]
        model = self.trained.model.to_bytes()
        done = self._call(learn_first, model, self.source, pieces, self._skip_bad)
        self._count([done])
        self.trained.scores = joined_scores(self.trained.scores, done.scores)
        schema = self.trained.model.schema
        self.trained.model = models.from_bytes(done.content)
        self.trained.model.schema = schema

    def _take_in(self, snapshot: bytes, done: list[ShardDone]) -> None:
        """Let the tree know what all shards have added, in their order, and grow."""
        self._count(done)
        sent: dict[tuple[int, ...], bytes] = {
            (shard,): each.content for shard, each in enumerate(done)
        }
        while len(sent) > MOST_SUMMED:
            sent = self._summed(sent)
        names = [f"the delta of shard {shards[0]}" for shards in sent]
        with ThreadPoolExecutor(MOST_UNPACKED) as pool:
            deltas = list(pool.map(Delta.from_bytes, sent.values(), names))
        for shards, delta in zip(sent, deltas, strict=True):
            expected = (digest_of(snapshot), self.trained.rounds, shards)
            if (delta.base, delta.round, delta.shards) != expected:
                raise MergeError(
                    f"a worker of {self._engine.name} has sent shards {delta.shards} of round "
                    f"{delta.round} for shards {shards} of round {self.trained.rounds}, or of "
                    "another model: let it do nothing but the tasks of this driver"
                )
        if deltas:
            total = reduce(add, deltas)
            take_in(self.trained.model, total)
            self.trained.scores = joined_scores(self.trained.scores, total.arrays["scores"])

    def _summed(self, sent: dict[tuple[int, ...], bytes]) -> dict[tuple[int, ...], bytes]:
        """Let workers sum deltas by groups, as the driver would be busy with so many."""
        shards = list(sent)
        groups = [shards[at : at + MOST_SUMMED] for at in range(0, len(shards), MOST_SUMMED)]
        sums = self._all_of(
            {
                place: (sum_deltas, [sent[each] for each in group])
                for place, group in enumerate(groups)
            }
        )
        return {
            tuple(chain.from_iterable(group)): sums[place] for place, group in enumerate(groups)
        }

    # -- workers ------------------------------------------------------------------------------

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that some worker calls."""
        return self._all_of({0: (function, *arguments)})[0]

    def _all_of(self, calls: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Return what all calls return; those of lost workers are done again."""
        results: dict[int, Any] = {}
        losses = 0
        while len(results) < len(calls):
            lost: Exception | None = None
            futures = {}
            try:
                for place, call in calls.items():
                    if place not in results:
                        futures[place] = self._engine.submit(*call)
            except BrokenExecutor as error:
                lost = error
            for place, future in futures.items():
                try:
                    results[place] = future.result()
                except (Exception, CancelledError) as error:
                    if not _is_loss(error):
                        raise
                    lost = error
            if lost is not None:
                losses += 1
                self._lost += 1
                if losses > MOST_LOSSES:
                    raise MergeError(
                        f"workers of {self._engine.name} were lost {losses} times in one round "
                        f"({lost}): give them more memory, or take fewer of them"
                    ) from lost
                self._engine.renew()
        return results

    def _collected(self, snapshot: bytes, lists: list[list[Piece]]) -> list[ShardDone]:
        """Return what workers have made of all shards.

        Where rows have several lines, a piece may begin within a row. Each piece reports where its
        last row ended. Comparing these from the first piece on finds the shards that began within
        a row, and they are done again.
        """
        skip = self._skip_bad
        calls = {
            shard: (learn_shard, snapshot, shard, self.source, pieces, skip)
            for shard, pieces in enumerate(lists)
        }
        done = self._all_of(calls)
        file, end = self._cursor.file, self._cursor.at
        for shard in range(len(lists)):
            first = done[shard].pieces[0]
            if first.piece.file == file and first.start != end:
                piece = replace(first.piece, start=end, end=max(end, first.piece.end), exact=True)
                pieces = [piece, *lists[shard][1:]]
                call = (learn_shard, snapshot, shard, self.source, pieces, skip)
                done[shard] = self._all_of({shard: call})[shard]
            last = done[shard].pieces[-1]
            file, end = last.piece.file, last.end
        return [done[shard] for shard in range(len(lists))]

    # -- what is known ------------------------------------------------------------------------

    def _count(self, done: list[ShardDone]) -> None:
        """Count rows, and go on to where the last of them ends."""
        cursor, bad, lines = self._cursor, list[BadRow](), {}
        for each in done:
            for place, read in enumerate(each.pieces):
                file = self.source.files[read.piece.file]
                before = cursor.line if read.piece.file == cursor.file and read.piece.start else 0
                lines[place] = before
                self.trained.rows_read += read.rows
                at_end = read.end >= file.size
                cursor = (
                    Cursor(read.piece.file + 1)
                    if at_end
                    else Cursor(read.piece.file, read.end, before + read.lines)
                )
            bad += [
                replace(row, number=row.number + lines[place], after=0) for place, row in each.bad
            ]
            self.trained.rows_learned += each.learned
            self.trained.rows_without_target += each.without_target
        if bad and not self._skip_bad:
            raise BadRowError(bad[0])
        self.trained.refused.update(row.reason for row in bad)
        if bad and self._on_bad_rows is not None:
            self._on_bad_rows(bad)
        self._cursor = cursor

    # -- checkpoints --------------------------------------------------------------------------

    def _save(self, at_once: bool) -> None:
        due = time.perf_counter() - self._saved_at >= self._every
        if self._checkpoint is None or not (at_once or due):
            return
        trained = self.trained
        state = {
            "cursor": asdict(self._cursor),
            "rows": [trained.rows_read, trained.rows_learned, trained.rows_without_target],
            "refused": dict(trained.refused),
            "rounds": trained.rounds,
            "parts": [] if self._members is None else [len(part) for part in self._members.parts],
        }
        parts = [] if self._members is None else self._members.parts
        model = b"".join([trained.model.to_bytes(), *parts])
        save_checkpoint(self._checkpoint, self._identity, state, model, trained.scores)
        self._saved_at = time.perf_counter()

    def _resume(self) -> None:
        if self._checkpoint is None:
            return
        found = load_checkpoint(self._checkpoint, self._identity)
        if found is None:
            return
        state, model, scores = found
        self._cursor = Cursor(**state["cursor"])
        read, learned, without = state["rows"]
        rejected, rounds = Counter(state["refused"]), state["rounds"]
        if self._members is not None:
            model = self._members.resume(model, state["parts"])
        tree = models.from_bytes(model)
        self.trained = Trained(tree, read, learned, without, rejected, rounds, 0.0, scores)


def _is_loss(error: BaseException) -> bool:
    """Whether an error means that a worker was lost, rather than that the worker found a fault."""
    return isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ in LOSSES


def train(
    model: HoeffdingTreeRegressor | ForestRegressor,
    name: Any,
    *,
    workers: int,
    engine: str | Executor = "processes",
    **options: Any,
) -> Trained:
    """Train a model on a source by several workers.

    Parameters
    ----------
    model : HoeffdingTreeRegressor or ForestRegressor
        The model to train; it need not be empty. The result contains the trained model.
    name : str, path, or sequence of them
        What workers read: files, a folder, a pattern such as ``days/*.parquet``, or a generator.
    workers : int
        The number of shards of a round, or of parts of a forest, and the number of workers on this
        machine.
    engine : str or Executor
        As for `sapwood.scale.engines.engine`.
    **options
        As for `Rounds`: read_options, share, on_bad_row, checkpoint, every, listener.

    Examples
    --------
    >>> import sapwood
    >>> from sapwood.scale import train
    >>> tree = sapwood.HoeffdingTreeRegressor()
    >>> found = train(tree, "friedman:rows=40000", workers=2, engine="threads")
    >>> found.model
    <HoeffdingTreeRegressor(): ... leaves, 40000 rows learned>
    >>> found.rows_learned, found.r2 > 0.85
    (40000, True)
    """
    if "wishes" in options:
        deprecated("wishes=", "read_options=")
        options["read_options"] = options.pop("wishes")
    with opened(engine, workers) as ready:
        return Rounds(model, name, workers=workers, engine=ready, **options).run()
