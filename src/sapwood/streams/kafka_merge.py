"""The order in which messages of several partitions are read.

Of the next messages of all partitions, the one with the oldest timestamp is read first; of equal
ones, the one with the lower offset, then the one of the lower partition. Before one is chosen, every
partition that is not at its end is waited for. Therefore the order of a topic that is not written to
meanwhile is always the same, from any position; and messages that arrive later are read in the order
of their arrival. Within a partition the order is always that of offsets.
"""

import heapq
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from sapwood.streams.kafka_topic import Extent, Topic
from sapwood.streams.stream import StreamError, message_number

__all__ = ["Merge", "Row", "check_kept"]

AT_ONCE = 10_000
"""Messages that are taken from librdkafka at a time."""
MOST_WAITING = 200_000
"""Messages that may wait for older ones of other partitions, about."""
FEW = 2_000
"""Those that a partition may always have waiting."""
IDLE = 0.1
"""Seconds for which a message is waited for at a time, so that Ctrl-C does not for longer."""
SOON = 0.01
"""The same where there are messages already that could be handed out."""
CHECK_EVERY = 5.0
"""Seconds between checks of the brokers, and of new partitions."""


Row = tuple[int, bytes | None]
"""The `message_number` of a message, and its value: None if it is a tombstone."""


class Merge:
    """Reads a topic from some offsets on.

    - `extents`: where these partitions end as far as is known.
    - `until_end`: whether nothing is read behind these ends; else more is waited for, without an
      end.
    - `offsets`: the next offset of each partition, behind all that was handed out.
    """

    def __init__(
        self,
        topic: Topic,
        start: Mapping[int, int],
        extents: Mapping[int, Extent],
        until_end: bool,
    ) -> None:
        self._topic, self._until_end = topic, until_end
        self.offsets = dict(start)
        self._reached = dict(start)  # of what has come in
        self._ends = {partition: extents[partition].end for partition in start}
        self._at_eof = dict.fromkeys(start, False)
        self._waiting: dict[int, deque[Any]] = {each: deque() for each in start}
        self._paused: set[int] = set()
        self._heard = self._checked = time.monotonic()
        topic.consumer.assign([self._partition(*place) for place in start.items()])

    def _partition(self, number: int, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self._topic.address.topic, number, offset)

    def read(self, most: int) -> Iterator[list[Row]]:
        """Yield messages as soon as they are there, never more than so many at a time."""
        rows: list[Row] = []
        while True:
            if all(map(self._is_settled, self._waiting)):
                self._merge(rows, most)
            is_over = self._until_end and all(map(self._is_over, self._waiting))
            if len(rows) == most or (rows and (is_over or not self._take_in(SOON))):
                yield rows
                rows = []
            elif is_over:
                return
            elif not rows:
                self._take_in(IDLE)

    def _merge(self, rows: list[Row], most: int) -> None:
        """Add messages, as long as it is known which one is the next."""
        heads = [
            _head(partition, waiting) for partition, waiting in self._waiting.items() if waiting
        ]
        heapq.heapify(heads)
        while heads and len(rows) < most:
            _, offset, partition = heads[0]
            waiting = self._waiting[partition]
            rows.append((message_number(partition, offset), waiting.popleft().value()))
            self.offsets[partition] = offset + 1
            if waiting:
                heapq.heapreplace(heads, _head(partition, waiting))
            elif self._is_at_end(partition):
                heapq.heappop(heads)
            else:
                return

    def _is_settled(self, partition: int) -> bool:
        """Whether it is known what a partition gives next, or that it gives nothing."""
        return bool(self._waiting[partition]) or self._is_at_end(partition)

    def _is_over(self, partition: int) -> bool:
        """Whether all was handed out, up to the end that is known."""
        return not self._waiting[partition] and self._is_at_end(partition)

    def _is_at_end(self, partition: int) -> bool:
        """Whether all has come in, up to the end that is known."""
        end = self._ends[partition]
        if not self._until_end:
            end = max(end, self._topic.known_end(partition))
        return self._at_eof[partition] or self._reached[partition] >= end

    # -- what comes in ----------------------------------------------------------------------------

    def _take_in(self, seconds: float) -> bool:
        """Take in what has come, or comes within some time; return whether anything has."""
        consumer = self._topic.consumer
        self._hold_back()
        first = consumer.poll(seconds)
        if first is not None:
            for message in (first, *consumer.consume(AT_ONCE, 0.0)):
                self._sort_in(message)
            self._heard = time.monotonic()
        if time.monotonic() - self._checked > CHECK_EVERY:
            self._check()
            self._checked = time.monotonic()
        return first is not None

    def _sort_in(self, message: Any) -> None:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None:
            self._handle_error(error, partition, offset)
        elif offset >= self._reached[partition]:  # else it was sent again
            if self._until_end and offset >= self._ends[partition]:
                self._reached[partition] = self._ends[partition]
                return
            self._waiting[partition].append(message)
            self._reached[partition] = offset + 1
            self._at_eof[partition] = False

    def _handle_error(self, error: KafkaError, partition: int, offset: int) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            # Offsets at the end may be of no message, such as the marks of transactions.
            self._reached[partition] = max(self._reached[partition], offset)
            self._at_eof[partition] = True
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            [extent] = self._topic.extents([partition]).values()
            check_kept(self._topic, partition, self._reached[partition], extent)
        elif not error.retriable():
            self._topic.fail(error, partition if partition >= 0 else None)

    def _hold_back(self) -> None:
        """Let no partition run far ahead of the others, so that memory is bounded."""
        most = max(FEW, MOST_WAITING // len(self._waiting))
        for partition, waiting in self._waiting.items():
            if partition in self._paused:
                if len(waiting) < most // 2:
                    self._topic.consumer.resume([self._partition(partition)])
                    self._paused.remove(partition)
            elif len(waiting) > most:
                self._topic.consumer.pause([self._partition(partition)])
                self._paused.add(partition)

    def _check(self) -> None:
        """Ask whether brokers are there, and for partitions that are new."""
        found, patience = self._topic.partitions(), self._topic.patience
        silent = time.monotonic() - self._heard
        missing = [each for each in self._waiting if not self._is_settled(each)]
        if missing and silent > patience:
            raise StreamError(
                f"{self._topic.address}, partition {missing[0]}: nothing has come for "
                f"{patience:g} seconds, although it is not at its end; check the brokers"
            )
        if not self._until_end:
            new = [partition for partition in found if partition not in self._waiting]
            for partition, extent in self._topic.extents(new).items():
                self._add(partition, extent)

    def _add(self, partition: int, extent: Extent) -> None:
        """Read a partition that is new, from its beginning."""
        self.offsets[partition] = self._reached[partition] = extent.start
        self._ends[partition], self._at_eof[partition] = extent.end, False
        self._waiting[partition] = deque()
        self._topic.consumer.incremental_assign([self._partition(partition, extent.start)])


def _head(partition: int, waiting: deque[Any]) -> tuple[int, int, int]:
    """Return by what the next message of a partition is compared with others."""
    message = waiting[0]
    return message.timestamp()[1], message.offset(), partition


def check_kept(topic: Topic, partition: int, offset: int, extent: Extent) -> None:
    """Complain of an offset that a partition does not have any more, or not yet."""
    place = f"{topic.address}, partition {partition}"
    if offset < extent.start:
        raise StreamError(
            f"{place}: offset {offset} is not there any more: {extent.start - offset:,} messages "
            "were removed before they were read; start over with another checkpoint, and let the "
            "topic keep messages for longer"
        )
    if offset > extent.end:
        raise StreamError(
            f"{place}: offset {offset} is not there, as the partition ends at {extent.end}: it was "
            "created again, or has lost messages; start over with another checkpoint"
        )
