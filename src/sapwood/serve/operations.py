"""What is written to the log: an operation is its kind, some parameters, and a request body."""

import json
import struct
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from sapwood.serve.arrow import ARROW, read_arrow
from sapwood.serve.rows import Batch, Limits, read_json

__all__ = ["Kind", "Operation", "Outcome"]

Kind = Literal["learn", "labels", "predict", "follow"]
KINDS: tuple[Kind, ...] = ("learn", "labels", "predict", "follow")
WANTED = {"learn": "xy", "labels": "iy", "predict": "x", "follow": "xy"}
HEAD = struct.Struct("<BI")
UNLIMITED = Limits(2**40, 2**40)
"""Of what is read from the log: it was within the limits when it was written."""


@dataclass
class Operation:
    """Something that changes the state of the service.

    - `media`: its content type, without parameters.
    - `params`: parameters of the request; of "follow", the position after the rows.
    """

    kind: Kind
    body: bytes
    media: str = "application/json"
    params: dict[str, Any] = field(default_factory=dict)

    def read(self, limits: Limits = UNLIMITED, task: str = "numbers") -> Batch:
        """Return the rows of the body; the task of the model decides what a target may be."""
        if self.media == ARROW:
            return read_arrow(self.body, self.params, WANTED[self.kind], limits, task)
        return read_json(self.body, WANTED[self.kind], limits, task)

    def to_bytes(self) -> bytes:
        """Return the operation as it is logged.

        Examples
        --------
        >>> operation = Operation("learn", b"{}", params={"id": "a"})
        >>> Operation.from_bytes(operation.to_bytes()) == operation
        True
        """
        meta = json.dumps({"media": self.media, "params": self.params}).encode()
        return HEAD.pack(KINDS.index(self.kind), len(meta)) + meta + self.body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the operation that `to_bytes` has written."""
        kind, size = HEAD.unpack_from(data)
        meta = json.loads(data[HEAD.size : HEAD.size + size])
        return cls(KINDS[kind], data[HEAD.size + size :], meta["media"], meta["params"])


@dataclass
class Outcome:
    """What an operation has done.

    - `answer`: what the client gets.
    - `learned`, `predicted`, `rejected`: the number of rows.
    - `evicted`: predictions whose label is no longer waited for, as there are too many.
    """

    answer: dict[str, Any] = field(default_factory=dict)
    learned: int = 0
    predicted: int = 0
    rejected: int = 0
    duplicates: int = 0
    evicted: int = 0
    drifts: list[dict[str, Any]] = field(default_factory=list)
