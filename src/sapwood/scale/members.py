"""The members of a forest in parts, one for each worker, which all learn the same rows.

Each worker reads all rows, and learns them with some of the members: what a member becomes depends
on the rows alone, not on who else learns them. In the end the parts are one forest again.
"""

from typing import Any

import sapwood
from sapwood import model as models
from sapwood.ensemble.forest import ForestRegressor
from sapwood.merge.errors import MergeError
from sapwood.merge.members import check_parts, parted, rejoined
from sapwood.scale.sources import Piece, Source
from sapwood.scale.worker import ShardDone, learn_first
from sapwood.storage.container import ModelFileError

__all__ = ["Members", "learn_members"]


class Members:
    """The parts of a forest, as bytes; none while it is whole."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.parts: list[bytes] = []
        self.leaves = 0
        self.rows = 0.0

    def part_if_whole(self, forest: ForestRegressor) -> None:
        """Let each worker have some of the members."""
        if not self.parts:
            self._use(parted(forest, self._workers))

    def _use(self, parts: list[ForestRegressor]) -> None:
        check_parts(parts)
        self.parts = [part.to_bytes() for part in parts]
        self.leaves = sum(part.n_leaves for part in parts)
        self.rows = parts[0]._kernel.rows

    def calls(
        self, source: Source, pieces: list[Piece], skip_bad: bool
    ) -> dict[int, tuple[Any, ...]]:
        """Return what workers are to do: learn the same rows, each with its members."""
        version = sapwood.__version__
        return {
            place: (learn_members, version, part, source, pieces, skip_bad)
            for place, part in enumerate(self.parts)
        }

    def take(self, done: list[ShardDone], engine: str) -> None:
        """Take over what workers have made of their members, if it is that.

        - Raises MergeError if a worker has sent something else.
        """
        parts = []
        for place, each in enumerate(done):
            read = (each.pieces, each.learned, each.without_target)
            if read != (done[0].pieces, done[0].learned, done[0].without_target):
                raise _foreign(engine, place, "it has read other rows than the first")
            parts.append(self._checked(each.content, place, engine, done[0].learned))
        self._use(parts)

    def _checked(self, content: bytes, place: int, engine: str, learned: int) -> ForestRegressor:
        try:
            part = ForestRegressor.from_bytes(content, f"the part of worker {place}")
        except ModelFileError as error:
            raise _foreign(engine, place, str(error)) from None
        sent = ForestRegressor.from_bytes(self.parts[place])
        if repr(part.parameters) != repr(sent.parameters):
            raise _foreign(engine, place, "it is a forest of other parameters")
        if part._kernel.rows != self.rows + learned:
            raise _foreign(
                engine, place, f"it has learned {part._kernel.rows - self.rows:.0f} rows"
            )
        return part

    def whole(self, forest: ForestRegressor) -> ForestRegressor:
        """Return the forest of all members, given the one that it was; it is whole then."""
        found = rejoined([ForestRegressor.from_bytes(part) for part in self.parts], forest)
        self.parts = []
        return found

    def resume(self, content: bytes, sizes: list[int]) -> bytes:
        """Take over the parts of a checkpoint; return the forest that it was, as bytes."""
        ends = len(content)
        parts = []
        for size in reversed(sizes):
            parts.append(content[ends - size : ends])
            ends -= size
        if parts:
            self._use([models.from_bytes(part) for part in reversed(parts)])
        return content[:ends]


def _foreign(engine: str, place: int, why: str) -> MergeError:
    return MergeError(
        f"worker {place} of {engine} has not sent its part of the forest ({why}): let it do "
        "nothing but the tasks of this driver"
    )


def learn_members(
    version: str, part: bytes, source: Source, pieces: list[Piece], skip_bad: bool
) -> ShardDone:
    """Learn rows with some members of a forest, in a worker, and return them.

    - `source`, `pieces`, `skip_bad`: as for `sapwood.scale.worker.learn_shard`.
    """
    if version != sapwood.__version__:
        raise MergeError(
            f"the driver has sapwood {version} and this worker has {sapwood.__version__}: install "
            "the same release on driver and workers"
        )
    return learn_first(part, source, pieces, skip_bad)
