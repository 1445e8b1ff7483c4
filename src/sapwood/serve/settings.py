"""What can be set for a service."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from sapwood.serve.rows import Limits
from sapwood.serve.wal import FsyncPolicy
from sapwood.serve.writer import WriterLimits

__all__ = ["Settings", "is_loopback"]


@dataclass(frozen=True)
class Settings:
    """The settings of a service.

    Parameters
    ----------
    path : Path
        The model.
    host, port
        The address to listen on.
    read_only : bool
        Whether the model is only read, and reloaded when its file changes.
    learn : bool
        Whether /learn and /labels are open.
    token, learn_token : str, optional
        The bearer tokens for all requests, and for those that learn.
    hosts : tuple of str
        Further names in the Host header that are accepted.
    fsync : {"always", "interval", "never"}
        When the log is flushed to the disk.
    limits : Limits
        The sizes of requests.
    writer : WriterLimits
        When checkpoints are due, and how much may wait.
    max_pending : int
        The largest number of pending predictions.
    max_rate : float
        Requests a second, 0 for no limit.
    max_learn_rate : float
        Rows that are learned a second, 0 for no limit.
    max_requests : int
        Requests that are served at the same time.
    max_streams : int
        Pages that are open at the same time.
    body_timeout : float
        Seconds in which a request has to be there.
    new_features : bool
        Whether rows may have features that the model does not know.
    monitor : bool
        Whether drift is watched for.
    log_requests : bool
        Whether each request is logged.
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
