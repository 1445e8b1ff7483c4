"""The HTTP server: uvicorn, with time limits for clients that are slow to send a request."""

import asyncio
import logging
import signal
import socket
import sys
import time
import warnings
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from sapwood.serve.app import make_app
from sapwood.serve.logs import log_event
from sapwood.serve.service import Service
from sapwood.serve.settings import Settings
from sapwood.system import system

__all__ = ["run"]

CONNECTIONS = 1_024
"""Connections that may be open at the same time."""
KEEP_ALIVE = 30
"""Seconds for which a connection without requests is kept."""
HEAD_SECONDS = 15.0
"""Seconds in which the head of a request has to be there."""
HEAD_BYTES = 2**16
"""Bytes that the head of a request may have."""
GRACE = 15
"""Seconds that requests have to end once the server is to stop."""
SWITCHING = 0.001
"""Seconds after which a thread lets another one run: learning does not hold up predictions."""

Base: Any = AutoHTTPProtocol


class Protocol(Base):  # type: ignore[misc]
    """A connection that is closed if the head of a request does not come in time."""

    def connection_made(self, transport: Any) -> None:
        """Start to watch a connection."""
        super().connection_made(transport)
        self._head_since: float | None = time.monotonic()
        self._head_bytes = 0
        self._watch = self.loop.call_later(HEAD_SECONDS, self._look)

    def data_received(self, data: bytes) -> None:
        """Take in what was sent."""
        if self._head_since is None and self._is_idle:
            self._head_since = time.monotonic()
        super().data_received(data)
        self._head_bytes += len(data)
        if not self._is_idle:
            self._head_since, self._head_bytes = None, 0
        elif self._head_bytes > HEAD_BYTES:
            self.transport.close()

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being served."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _look(self) -> None:
        since = self._head_since
        if self.transport.is_closing():
            return
        if since is not None and self._is_idle and time.monotonic() - since >= HEAD_SECONDS:
            self.transport.close()
            return
        self._watch = self.loop.call_later(HEAD_SECONDS / 3, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop to watch."""
        self._watch.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """A server that lets the service know when it is to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, and end the streams of pages."""
        self._service.stopping = True
        super().handle_exit(sig, frame)


def run(settings: Settings, follow: Any = None) -> None:
    """Serve a model until SIGTERM or SIGINT.

    - `follow`: returns a topic that is learned from, given the service.
    - Raises StoreError, LogError, ModelFileError, OSError, TypeError if the model cannot be served.
    """
    warnings.simplefilter("ignore")  # about rows: responses report these
    sys.setswitchinterval(SWITCHING)
    bound = bind(settings.host, settings.port)
    service = Service(settings)
    source = None if follow is None else follow(service)
    config = uvicorn.Config(
        make_app(service),
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        lifespan="on",
    )
    for number in system.stop_signals:
        signal.signal(number, lambda number, frame: None)  # uvicorn raises it again in the end
    host, port = bound.getsockname()[:2]
    log_event(
        "listening",
        url=f"http://{f'[{host}]' if ':' in host else host}:{port}",
        model=settings.path.name,
        kind=service.replica.host.kind,
        rows=service.replica.rows,
        can_learn=settings.can_learn,
        fsync=settings.fsync,
    )
    if source is not None:
        source.start()
    try:
        asyncio.run(Server(config, service).serve(sockets=[bound]))
    finally:
        if source is not None:
            source.stop()
        bound.close()
    log_event("stopped", rows=service.rows)
    if service.failure is not None:
        log_event("failed", logging.CRITICAL, message=service.failure)
        sys.exit(1)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; 0 is any port that is free."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # Without the protocol, asyncio would leave Nagle's algorithm on: 40 ms for every answer.
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2_048)
    except OSError as error:
        made.close()
        error.filename = f"{host}:{port}"
        raise
    return made
