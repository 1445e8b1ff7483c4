"""The live page's stream of server-sent events."""

import asyncio
import json
from typing import Any

from starlette.types import Receive, Scope, Send

from sapwood.serve.model_host import plain
from sapwood.serve.service import Service

__all__ = ["EventStream", "snapshot"]

TICK = 0.5
"""Seconds between two looks for something new."""
QUIET = 15.0
"""Seconds after which a comment is sent, so that proxies keep the connection."""
PATIENCE = 30.0
"""Seconds for which a client may not read."""


def snapshot(service: Service, since: int = 0) -> dict[str, Any]:
    """Return what the page shows, in terms of JSON.

    - `since`: only scored rows after this one are included.
    """
    now = service.published
    host = service.replica.host
    return {
        "kind": host.kind,
        "task": host.task,
        "classes": [str(label) for label in host.classes],
        "read_only": not service.settings.can_learn,
        "rows": service.rows,
        "bytes": host.nbytes,
        "pending": now.pending,
        "checkpoint_age": round(service.checkpoint_age, 1),
        "scores": now.scores,
        "levels": list(host.levels),
        "points": [point for point in now.points if point[0] > since],
        "curve": now.curve,
        "drifts": now.drifts[-50:],
        "importances": service.replica.importances(),
        "version": service.replica.version,
    }


class EventStream:
    """An answer that sends what is new until the client leaves or the server stops."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._since = 0
        self._seen: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events."""
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        self._service.streams += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._run(receive, send)
        except TimeoutError:  # the client does not read: uvicorn closes the connection
            return
        finally:
            self._service.streams -= 1

    async def _run(self, receive: Receive, send: Send) -> None:
        quiet = QUIET  # so that the first answer comes at once
        while not self._service.stopping:
            data = self._news()
            if data is None and quiet >= QUIET:
                data = b": nothing new\n\n"
            if data is not None:
                quiet = 0.0
                async with asyncio.timeout(PATIENCE):
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            if await self._has_left(receive):
                return
            quiet += TICK
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _news(self) -> bytes | None:
        """Return an event if something has changed since the last one."""
        service = self._service
        key = service.published.version, service.replica.version
        if key == self._seen:
            return None
        self._seen = key
        found = snapshot(service, self._since)
        if found["points"]:
            self._since = found["points"][-1][0]
        return f"data: {json.dumps(plain(found))}\n\n".encode()

    @staticmethod
    async def _has_left(receive: Receive) -> bool:
        """Wait for a moment; return whether the client has left meanwhile."""
        try:
            async with asyncio.timeout(TICK):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return True
        except TimeoutError:
            return False
