"""The steps that every request passes: request id, authorization, limits, metrics and log."""

import hmac
import logging
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sapwood.serve.answers import REASONS, error_response
from sapwood.serve.logs import log_request
from sapwood.serve.metrics import REJECTED, Metrics
from sapwood.serve.settings import Settings, is_loopback

__all__ = ["Bucket", "Gate"]

GOOD_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OPEN = frozenset({"/", "/healthz", "/readyz"})
LEARNING = frozenset({"/learn", "/labels"})
KNOWN = OPEN | LEARNING | {
    *("/predict", "/model", "/model/tree", "/metrics", "/openapi.json", "/events"),
}  # fmt: skip
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
COUNTED_AS = {
    status: reason
    for status, reason in {**REASONS, 415: "media_type", 503: "busy"}.items()
    if reason in REJECTED
}


class Bucket:
    """A token bucket: so many tokens a second, and a burst of twice as many.

    - `rate`: tokens a second, 0 for no limit.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._tokens = self._most = max(1.0, 2.0 * rate)
        self._at = time.monotonic()

    def take(self, count: float = 1.0) -> float:
        """Take tokens if they are there; return for how many seconds to wait if not.

        More tokens than a burst are taken at once if the bucket is full.
        """
        if self._rate <= 0.0:
            return 0.0
        now = time.monotonic()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        needed = min(count, self._most)
        if self._tokens >= needed:
            self._tokens -= count
            return 0.0
        return (needed - self._tokens) / self._rate


class Gate:
    """Middleware around the routes."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._bucket = Bucket(settings.max_rate)
        self._active = 0
        metrics.active.set_function(lambda: self._active)
        self._latency = {path: metrics.latency.labels(path) for path in (*KNOWN, "other")}
        self._counts: dict[tuple[str, int], Any] = {}
        self._tokens = [_bearer(token) for token in (settings.token, settings.learn_token)]
        self._checks_host = is_loopback(settings.host) and settings.token is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given.decode() if GOOD_ID.fullmatch(given) else secrets.token_hex(8)
        scope["request_id"] = request_id
        extra = [(b"x-request-id", request_id.encode()), *HEADERS]
        status, start = 500, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        self._active += 1
        try:
            rejection = self._rejection(scope, headers)
            if rejection is not None:
                await rejection(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        finally:
            self._active -= 1
            self._note(scope, status, time.perf_counter() - start)

    def _rejection(self, scope: Scope, headers: dict[bytes, bytes]) -> Any:
        """Return the answer to a request that is not served, None if it is."""
        path = scope["path"]
        if path in ("/healthz", "/readyz"):
            return None
        if self._active > self._settings.max_requests:
            message = "too many requests at the same time; try again later"
            return error_response(scope, 503, message, {"retry-after": "1"})
        if self._checks_host and not self._is_own(headers.get(b"host", b"")):
            return error_response(
                scope, 421, "the Host header names another server; allow it with --allow-host"
            )
        wait = self._bucket.take()
        if wait > 0.0:
            message = f"more than {self._settings.max_rate:g} requests a second; try again later"
            return error_response(scope, 429, message, {"retry-after": str(int(wait) + 1)})
        if path in OPEN or path.startswith("/static/"):
            return None
        return self._unauthorized(scope, path, headers)

    def _unauthorized(self, scope: Scope, path: str, headers: dict[bytes, bytes]) -> Any:
        read, learn = self._tokens
        wanted = [token for token in (read, learn) if token is not None]
        if path in LEARNING and learn is not None:
            wanted = [learn]
        elif read is None:
            return None
        sent = headers.get(b"authorization", b"")
        matches = [hmac.compare_digest(sent, token) for token in wanted]  # all, in the same time
        if any(matches):
            return None
        return error_response(
            scope, 401, "a bearer token is required", {"www-authenticate": "Bearer"}
        )

    def _is_own(self, host: bytes) -> bool:
        """Whether a request was sent to this server by name, not by a page of another one."""
        try:
            name = host.decode("ascii").lower()
        except UnicodeDecodeError:
            return False
        name = name.rpartition(":")[0] if not name.endswith("]") and ":" in name else name
        name = name.strip("[]")
        return is_loopback(name) or name in self._settings.hosts

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in KNOWN else "other"
        if path != "/events":
            self._latency[path].observe(seconds)
        key = path, status
        if key not in self._counts:
            self._counts[key] = self._metrics.requests.labels(path, str(status))
        self._counts[key].inc()
        if status >= 400:
            self._metrics.rejected.labels(COUNTED_AS.get(status, "other")).inc()
        if self._settings.log_requests:
            quiet = path in ("/healthz", "/readyz", "/metrics")
            client = scope.get("client")
            log_request(
                logging.DEBUG if quiet else logging.INFO,
                method=scope["method"],
                path=path,
                status=status,
                ms=round(1000 * seconds, 3),
                rows=scope.get("rows", 0),
                request_id=scope["request_id"],
                client=client[0] if client else None,
            )


def _bearer(token: str | None) -> bytes | None:
    return None if token is None else b"Bearer " + token.encode()
