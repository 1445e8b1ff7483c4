"""Answers as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

__all__ = ["REASONS", "error_response", "json_response"]

encode_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

REASONS = {
    400: "malformed",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    422: "bad_row",
    429: "rate_limit",
    500: "internal",
    503: "unavailable",
}


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer in JSON."""
    return Response(encode_json(content).encode(), status, dict(headers or {}), "application/json")


def error_response(
    scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return why a request was not served."""
    error = {
        "status": status,
        "reason": REASONS.get(status, "other"),
        "message": message,
        "request_id": scope.get("request_id", ""),
    }
    return json_response({"error": error}, status, headers)
