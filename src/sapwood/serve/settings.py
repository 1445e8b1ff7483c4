"""What can be set for a service."""

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from sapwood.serve.rows import Limits
from sapwood.serve.wal import FsyncPolicy
from sapwood.serve.writer import WriterLimits

__all__ = ["Settings", "is_loopback"]


@dataclass(frozen=True)
class Settings:
    """The settings of a service.

    - `host`, `port`: the address to listen on.
    - `read_only`: whether the model is only read, and reloaded when its file changes.
    - `learn`: whether /learn and /labels are open.
    - `token`, `learn_token`: the bearer tokens for all requests, and for those that learn.
    - `hosts`: further names in the Host header that are accepted.
    - `fsync`: when the log is flushed to the disk.
    - `limits`: the sizes of requests.
    - `writer`: when checkpoints are due, and how much may wait.
    - `max_pending`: the largest number of pending predictions.
    - `max_rate`: requests a second, 0 for no limit.
    - `max_learn_rate`: rows that are learned a second, 0 for no limit.
    - `max_requests`: requests that are served at the same time.
    - `max_streams`: pages that are open at the same time.
    - `body_timeout`: seconds in which a request has to be there.
    - `new_features`: whether rows may have features that the model does not know.
    - `log_requests`: whether each request is logged.
    """

    path: Path
    host: str = "127.0.0.1"
    port: int = 8080
    read_only: bool = False
    learn: bool = True
    token: str | None = None
    learn_token: str | None = None
    hosts: tuple[str, ...] = ()
    fsync: FsyncPolicy = "always"
    limits: Limits = field(default_factory=Limits)
    writer: WriterLimits = field(default_factory=WriterLimits)
    max_pending: int = 100_000
    max_rate: float = 0.0
    max_learn_rate: float = 0.0
    max_requests: int = 256
    max_streams: int = 32
    body_timeout: float = 30.0
    new_features: bool = False
    new_classes: bool = False
    monitor: bool = True
    log_requests: bool = True

    @property
    def can_learn(self) -> bool:
        """Whether the service has a writer that clients may use."""
        return self.learn and not self.read_only


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
