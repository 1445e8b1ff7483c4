"""Rows as messages of a Kafka topic: a JSON object each, from all partitions.

Columns and their types are found as in a file of JSON lines, by the first 1,000 messages that are
there when the topic is opened. A message without a value (a tombstone) is skipped, as blank lines
are. A position holds the next offset of each partition. Saving it together with the model gives
exactly-once processing; no offsets are committed to the broker.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from sapwood import validation
from sapwood.streams import bad_rows
from sapwood.streams.blocks import HEAD, Block, TextSource
from sapwood.streams.jsonlines import SAMPLE_ROWS, JSONLinesStream
from sapwood.streams.kafka_address import Address
from sapwood.streams.kafka_merge import Merge, Row, check_kept
from sapwood.streams.kafka_topic import Extent, Topic, logger
from sapwood.streams.schema import ReadOptions
from sapwood.streams.stream import (
    MOST_ROWS,
    BadRow,
    Chunk,
    DerivedStream,
    Position,
    StreamError,
    place_in_words,
)

__all__ = ["KafkaStream"]

PARTITION = "partition "
REMEDIES = {
    bad_rows.MALFORMED_JSON: "send one JSON object a message",
    bad_rows.BAD_ENCODING: "send JSON in UTF-8",
    bad_rows.UNKNOWN_COLUMN: "leave the key out, or start over once the first messages have it",
}
"""What helps with faults for which it is something else in a file."""


class KafkaStream(DerivedStream):
    """The messages of a topic, from its beginning or from the offsets of a position on.

    - `until_end`: whether reading ends where the topic ends when it is opened; else it never does.
    - `sample`: `Stream.sample` of the stream from whose positions reading resumes: columns are
      found by the same messages then, be they still there or not.
    """

    def __init__(
        self,
        address: Address,
        read_options: ReadOptions,
        until_end: bool = False,
        sample: bytes | None = None,
    ) -> None:
        self._address, self._until_end = address, until_end
        with closing(Topic(address)) as topic:
            self._opened_at = _extents(topic)
            self._cluster = topic.cluster
            if sample is None:
                enough = SAMPLE_ROWS if read_options.known is None else 1
                sample = _sample(topic, self._opened_at, until_end, enough)
        source = TextSource(str(address), "utf-8", io.BytesIO(sample))
        self._rows = rows = JSONLinesStream(source, read_options)
        size = sum(extent.end - extent.start for extent in self._opened_at.values())
        super().__init__(
            rows, unit="offset", size=size if until_end else None, length=None, sample=sample
        )

    def chunks(self, start: Position | None = None, most_rows: int = MOST_ROWS) -> Iterator[Chunk]:
        """Yield messages from a position on.

        - Raises StreamError if the brokers are away for long, or messages of the position were
          removed.
        """
        self._rows.recall(start or {})
        with closing(Topic(self._address)) as topic:
            extents = _extents(topic)
            offsets = _offsets(topic, start or {}, extents)
            if self._until_end:
                extents = {**extents, **self._opened_at}
                offsets = {each: offsets[each] for each in offsets if each in self._opened_at}
            merge = Merge(topic, offsets, extents, self._until_end)
            for rows in merge.read(most_rows):
                chunk = self._chunk(rows, merge.offsets)
                if len(chunk) or chunk.bad:
                    yield chunk

    def _chunk(self, rows: Sequence[Row], behind: Mapping[int, int]) -> Chunk:
        values = [value for _, value in rows if value is not None]
        known = [number for number, value in rows if value is not None]
        numbers = np.array(known, dtype=np.int64)
        data = _lines(values)
        chunk = self._rows.read(Block(data, 0, len(values), 0, len(data), 0))
        return replace(
            chunk,
            numbers=numbers[chunk.numbers],
            next={**_position(behind), **self._rows.decided()},
            done=self._done(behind),
            bad=[_bad_row(bad, int(numbers[bad.number]), values[bad.number]) for bad in chunk.bad],
        )

    def _done(self, behind: Mapping[int, int]) -> int:
        """Return how many offsets are behind, of those there were when the topic was opened."""
        return sum(
            max(0, offset - self._opened_at[partition].start)
            for partition, offset in behind.items()
            if partition in self._opened_at
        )

    @property
    def fingerprint(self) -> str:
        """The topic and its cluster, however that is reached."""
        return f"Kafka topic {self._address.topic} of {self._cluster}"


def _extents(topic: Topic) -> dict[int, Extent]:
    return topic.extents(topic.partitions())


# -- positions -------------------------------------------------------------------------------------


def _position(offsets: Mapping[int, int]) -> Position:
    return {f"{PARTITION}{number}": offset for number, offset in sorted(offsets.items())}


def _offsets(topic: Topic, position: Position, extents: Mapping[int, Extent]) -> dict[int, int]:
    """Return the offsets of a position; partitions that it does not know are read as a whole."""
    offsets = {partition: extent.start for partition, extent in extents.items()}
    for name, offset in position.items():
        if not name.startswith(PARTITION):
            continue
        number = int(name.removeprefix(PARTITION))
        if number not in extents:
            raise StreamError(
                f"{topic.address}: partition {number} was read before, and is not there any more: "
                "the topic was created again; start over with another checkpoint"
            )
        check_kept(topic, number, offset, extents[number])
        offsets[number] = offset
    return offsets


# -- messages --------------------------------------------------------------------------------------


def _lines(values: Sequence[bytes]) -> bytes:
    r"""Return messages as lines.

    Within a message, "\r" does for "\n": JSON has both as blanks, and neither within a string.
    """
    return b"\n".join(value.replace(b"\n", b"\r") if b"\n" in value else value for value in values)


def _bad_row(bad: BadRow, number: int, value: bytes) -> BadRow:
    remedy = REMEDIES.get(bad.reason, bad.remedy)
    return replace(bad, unit="offset", number=number, remedy=remedy, text=value)


def _sample(topic: Topic, extents: dict[int, Extent], until_end: bool, enough: int) -> bytes:
    """Return the first messages that are JSON objects, as lines.

    What is there is enough, if it is anything at all; else the first message is waited for.
    """
    start = {partition: extent.start for partition, extent in extents.items()}
    found, complaint = _first_objects(Merge(topic, start, extents, True), enough, SAMPLE_ROWS)
    if not (found or complaint or until_end):
        logger.warning("sapwood: %s: no messages yet; waiting for the first", topic.address)
        found, complaint = _first_objects(Merge(topic, start, extents, False), 1, 1)
    topic.consumer.unassign()
    if not (found or complaint):
        raise StreamError(f"{topic.address} has no messages: there is nothing to read")
    if not found:
        raise StreamError(
            f"{topic.address} has no JSON object in its first messages: {complaint}; send one JSON "
            "object a message, as other formats are not read"
        )
    return _lines(found) + b"\n"


def _first_objects(merge: Merge, enough: int, most: int) -> tuple[list[bytes], str]:
    """Return the first messages that are JSON objects, and what is wrong with the first other one.

    - `most`: how many messages are looked at, tombstones not counted.
    """
    found: list[bytes] = []
    looked_at, size, complaint = 0, 0, ""
    for rows in merge.read(most):
        for number, value in rows:
            if value is None:
                continue
            looked_at += 1
            flaw = _flaw(value)
            if flaw is None:
                found.append(value)
                size += len(value) + 1
            elif not complaint:
                complaint = f"{place_in_words('offset', number)}: {flaw}"
            if len(found) >= enough or size >= HEAD or looked_at >= most:
                return found, complaint
    return found, complaint


def _flaw(value: bytes) -> str | None:
    """Return why a message is no JSON object, None if it is one."""
    try:
        is_object = isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        is_object = False
    return None if is_object else validation.shown(value.decode(errors="backslashreplace"))
