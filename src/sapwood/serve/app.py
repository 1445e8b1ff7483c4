"""The routes of the service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sapwood.serve.answers import error_response, json_response
from sapwood.serve.arrow import ARROW, write_arrow
from sapwood.serve.events import EventStream
from sapwood.serve.gate import Gate
from sapwood.serve.metrics import CONTENT_TYPE
from sapwood.serve.model_host import REJECTIONS, ModelHost, Predicted
from sapwood.serve.openapi import description
from sapwood.serve.operations import Kind, Operation
from sapwood.serve.rows import (
    JSON,
    Batch,
    RowError,
    check_classes,
    check_names,
    check_target_names,
)
from sapwood.serve.service import Service
from sapwood.serve.writer import UnavailableError

__all__ = ["make_app"]

Found = TypeVar("Found")

INLINE = 256
"""Rows up to which a request is served by the event loop itself; more go to another thread."""
MOST_EXPLAINED = 100
"""Rows of a request that are explained: the first ones."""
ROW_REASONS = {409: "conflict", 413: "too_large", 429: "rate_limit", 503: "busy"}
"""Why rows are rejected, by status; of 422 the error has the reason."""
MEDIA = {
    "page.htm": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "uplot.js": "text/javascript; charset=utf-8",
    "uplot.css": "text/css; charset=utf-8",
    "uplot.LICENSE.txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        await asyncio.to_thread(service.stop)

    handlers = Handlers(service)
    routes = [
        *(
            Route(f"/{kind}", partial(handlers.answered, kind), methods=["POST"])
            for kind in ("predict", "learn", "labels")
        ),
        Route("/", handlers.file),
        Route("/static/{name}", handlers.file),
        Route("/model", handlers.model),
        Route("/model/tree", handlers.tree),
        Route("/healthz", handlers.healthz),
        Route("/readyz", handlers.readyz),
        Route("/metrics", handlers.metrics),
        Route("/openapi.json", handlers.openapi),
        Route("/events", handlers.events),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Gate, service.settings, service.metrics)],
        exception_handlers={HTTPException: on_http_error, Exception: on_error},
    )


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer for what has no route."""
    assert isinstance(error, HTTPException)
    return error_response(request.scope, error.status_code, error.detail, error.headers)


async def on_error(request: Request, error: Exception) -> Response:
    """Answer for a fault of the server, without what it was."""
    message = "the server has failed; its log has the request id"
    return error_response(request.scope, 500, message)


class Rejected(Exception):  # noqa: N818 - it becomes an answer
    """A request that is answered by an error."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Handlers:
    """The functions behind the routes."""

    def __init__(self, service: Service) -> None:
        self._service, self._settings = service, service.settings
        folder = files("sapwood.serve") / "static"
        self._static = {name: (folder / name).read_bytes() for name in MEDIA}
        self._predicted = service.metrics.rows.labels("predict")

    # -- rows -------------------------------------------------------------------------------------

    async def answered(self, kind: Kind, request: Request) -> Response:
        """Predict rows, learn them, or learn rows that were predicted; or return why not."""
        try:
            if kind == "predict":
                return await self._predict(request)
            return await self._learn(request, kind)
        except ClientDisconnect:
            return error_response(request.scope, 400, "the client has left")
        except (Rejected, UnavailableError, *REJECTIONS) as error:
            status = getattr(error, "status", 422)
            reason = ROW_REASONS.get(status)
            if status == 422:
                reason = error.reason if isinstance(error, RowError) else RowError.reason
            if reason is not None:  # a body that could not be read counts as one row
                rows = max(1, request.scope.get("rows", 0))
                self._service.metrics.rejected_rows.labels(reason).inc(rows)
            headers = getattr(error, "headers", None)
            return error_response(request.scope, status, str(error), headers)

    async def _read(self, request: Request, kind: Kind) -> tuple[Operation, Batch]:
        """Return the operation of a request, and its rows."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in (JSON, ARROW) or (kind == "labels" and media != JSON):
            expected = JSON if kind == "labels" else f"{JSON} or {ARROW}"
            raise Rejected(415, f"the content type is {media or 'missing'!s:.80}; send {expected}")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Rejected(415, "the body has a content encoding; send it as it is")
        body = await self._body(request)
        params = {}
        if media == ARROW:
            given = request.query_params
            params = {name: given[name] for name in ("id", "target", "weight") if name in given}
        operation, host = Operation(kind, body, media, params), self._service.replica.host
        if len(body) > 2**16:
            batch = await asyncio.to_thread(operation.read, self._settings.limits, host.task)
        else:
            batch = operation.read(self._settings.limits, host.task)
        request.scope["rows"] = batch.count
        if batch.y is not None:
            self._check_y(batch.y, host)
        known = self._service.replica.names
        if known and kind != "labels" and not self._settings.new_features:
            check_names(batch.rows, known)
        return operation, batch

    def _check_y(self, y: list[Any], host: ModelHost) -> None:
        """Raise TargetError for targets that the model does not know, learned or not."""
        if host.task != "classes":
            if self._service.replica.rows:
                check_target_names(y, host.targets)
        elif host.classes and not self._settings.new_classes:
            check_classes(y, host.classes)

    async def _body(self, request: Request) -> bytes:
        most = self._settings.limits.bytes
        too_large = f"the body has more than {most:,} bytes; send fewer rows at once"
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most:
            raise Rejected(413, too_large, connection="close")
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        raise Rejected(413, too_large, connection="close")
        except TimeoutError:
            seconds = f"{self._settings.body_timeout:g}"
            raise Rejected(
                408, f"the body was not there after {seconds} seconds", connection="close"
            ) from None
        return b"".join(parts)

    async def _learn(self, request: Request, kind: Kind) -> Response:
        writer = self._service.writer
        if writer is None or not self._settings.can_learn:
            raise Rejected(403, "this server does not learn")
        operation, batch = await self._read(request, kind)
        wait = self._service.learn_bucket.take(batch.count)
        if wait > 0.0:
            message = f"more than {self._settings.max_learn_rate:g} rows a second; try again later"
            raise Rejected(429, message, **{"retry-after": str(int(wait) + 1)})
        if kind == "learn" and batch.ids is not None:
            # Rows that are not learned, as they were learned before, are checked nevertheless.
            await self._reading(batch.count, lambda host: host.values(batch))
        outcome = await asyncio.wrap_future(writer.submit(operation, batch))
        return json_response(outcome.answer)

    async def _predict(self, request: Request) -> Response:
        query = request.query_params if request.scope["query_string"] else {}
        levels = self._levels(query.get("intervals", "false"))
        explain = _flag(query, "explain")
        operation, batch = await self._read(request, "predict")
        service = self._service
        as_arrow = ARROW in request.headers.get("accept", "")
        found: Any
        if batch.ids is not None:
            if service.writer is None or not self._settings.can_learn:
                raise Rejected(403, "this server does not learn, so it keeps no ids; send none")
            outcome = await asyncio.wrap_future(service.writer.submit(operation, batch))
            found = outcome.answer["issued"]
        elif levels or as_arrow:
            found = await self._reading(batch.count, lambda host: host.predict(batch))
        else:
            found = await self._reading(batch.count, lambda host: host.values(batch))
        if batch.ids is None:
            self._predicted.inc(batch.count)
        host = service.replica.host
        if as_arrow:
            return Response(write_arrow(host.columns(found, levels)), media_type=ARROW)
        answer: dict[str, Any] = {"predictions": found, "model_rows": service.replica.rows}
        if isinstance(found, Predicted):
            answer |= host.answer(found)
            if levels:
                answer["intervals"] = intervals_of(host, found, levels)
        if explain:
            rows = batch.as_dicts()[:MOST_EXPLAINED]
            answer["explanations"] = await self._reading(
                INLINE * len(rows), lambda model: [model.explain(row) for row in rows]
            )
        return json_response(answer)

    async def _reading(self, rows: int, function: Callable[[ModelHost], Found]) -> Found:
        """Read from the replica: at once if it is quick and nobody else reads, or in a thread."""
        replica = self._service.replica
        if rows <= INLINE:
            done, found = replica.try_read(function)
            if done:
                return found  # type: ignore[return-value]
        return await asyncio.to_thread(replica.read, function)

    def _levels(self, text: str) -> list[float]:
        """Return the levels of the prediction intervals that were requested."""
        if text == "false":
            return []
        known = self._service.replica.host.levels
        if not known:
            raise RowError("the model has no prediction intervals; leave intervals out")
        if text == "true":
            return list(known)
        wanted = []
        for part in text.split(","):
            match = [level for level in known if f"{level:g}" == part.strip()]
            if not match:
                levels = ", ".join(f"{level:g}" for level in known)
                raise RowError(f"intervals={part:.40}: true, or some of {levels} are expected")
            wanted += match
        return wanted

    # -- the model --------------------------------------------------------------------------------

    async def model(self, request: Request) -> Response:
        """Describe the model."""
        service = self._service
        found = await asyncio.to_thread(service.replica.read, lambda host: host.describe())
        scores = service.published.scores
        served = {"rows": service.rows, "can_learn": self._settings.can_learn}
        return json_response({**found, **served, "scores": scores})

    async def tree(self, request: Request) -> Response:
        """Return the nodes of a tree."""
        text = request.query_params.get("member", "0")
        if not (text.isascii() and text.isdigit() and len(text) < 8):
            return error_response(request.scope, 422, f"member={text:.40}: a number is expected")
        replica = self._service.replica
        members = await asyncio.to_thread(replica.read, lambda host: host.members())
        if members and int(text) >= members:
            message = f"member={text}: the model has {members} trees; counted from 0"
            return error_response(request.scope, 404, message)
        nodes = await asyncio.to_thread(replica.read, lambda host: host.tree(int(text)))
        return json_response({"member": int(text), "members": members, "nodes": nodes})

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        return json_response(description(self._service))

    # -- operation --------------------------------------------------------------------------------

    async def healthz(self, request: Request) -> Response:
        """Report whether the process has to be restarted."""
        return _status(request, self._service.failure, "ok")

    async def readyz(self, request: Request) -> Response:
        """Report whether the service accepts requests."""
        return _status(request, self._service.unready, "ready")

    async def metrics(self, request: Request) -> Response:
        """Return the metrics."""
        return Response(self._service.metrics.to_text(), media_type=CONTENT_TYPE)

    async def events(self, request: Request) -> Any:
        """Send what is new, as server-sent events."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self._service.streams >= self._settings.max_streams:
            message = "too many pages are open; close one, or raise --max-streams"
            return error_response(request.scope, 503, message, {"retry-after": "10"})
        return EventStream(self._service)

    async def file(self, request: Request) -> Response:
        """Return the live page, or a file that it needs."""
        name = request.path_params.get("name", "page.htm")
        if name not in self._static:
            return error_response(request.scope, 404, "Not Found")
        headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
        return Response(self._static[name], headers=headers, media_type=MEDIA[name])


def _status(request: Request, failure: str | None, status: str) -> Response:
    """Return that the service is in a state, or why it is not."""
    if failure is not None:
        return error_response(request.scope, 503, failure)
    return json_response({"status": status})


def _flag(query: Mapping[str, str], name: str) -> bool:
    """Return a parameter that is true or false."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise RowError(f"{name}={text:.40}: true or false is expected")
    return text == "true"


def intervals_of(host: ModelHost, found: Predicted, levels: list[float]) -> dict[str, Any]:
    """Return prediction intervals in terms of JSON, by level."""
    answer = {}
    for level in levels:
        place = host.levels.index(level)
        if found.bounds is None:
            nothing = np.full(found.values.shape, np.nan)
            lower = upper = nothing
        else:
            lower, upper = found.bounds[:, :, place, 0], found.bounds[:, :, place, 1]
        answer[f"{level:g}"] = {"lower": host.as_json(lower), "upper": host.as_json(upper)}
    return answer
