"""The OpenAPI description of the service, for the model that it serves."""

from typing import Any

import sapwood
from sapwood.serve.arrow import ARROW
from sapwood.serve.metrics import CONTENT_TYPE
from sapwood.serve.rows import HEAVIEST, JSON, LARGEST, LONGEST_ID
from sapwood.serve.service import Service
from sapwood.validation import LONGEST

__all__ = ["description"]

ERRORS = {
    400: "The body is malformed.",
    401: "A bearer token is required.",
    403: "The server does not learn.",
    404: "There is no such tree.",
    408: "The body did not come in time.",
    409: "An id is in a state that forbids this.",
    413: "The request is too large.",
    415: "The content type is not supported.",
    421: "The Host header names another server.",
    422: "A row is rejected; nothing has changed.",
    429: "Too many requests or rows a second.",
    500: "The server has failed.",
    503: "The server is busy, stopping, or cannot write its log.",
}
ROW_ERRORS = (400, 401, 403, 408, 409, 413, 415, 421, 422, 429, 500, 503)
READ_ERRORS = (401, 421, 429, 500, 503)
CATEGORY: dict[str, Any] = {
    "type": ["string", "integer", "boolean", "null"],
    "maxLength": LONGEST,
    "minimum": -(2**63),
    "maximum": 2**64 - 1,
}
KINDS = {
    "number": {"type": ["number", "boolean", "null"]},
    "category": CATEGORY,
    "identifier": CATEGORY,
    "unknown": {"type": ["number", "string", "boolean", "null"]},
}
NUMBER: dict[str, Any] = {"type": "number"}
OPTIONAL: dict[str, Any] = {"type": ["number", "null"]}
TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def description(service: Service) -> dict[str, Any]:
    """Return the description."""
    host, settings = service.replica.host, service.settings
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "sapwood serve",
            "version": sapwood.__version__,
            "summary": f"A {host.kind} as a service.",
        },
        "paths": _paths(service),
        "components": {"schemas": _schemas(service)},
    }
    if settings.token is not None or settings.learn_token is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        if settings.token is not None:
            found["security"] = [{"token": []}]
    return found


# -- schemas ---------------------------------------------------------------------------------------


def _schemas(service: Service) -> dict[str, Any]:
    kinds = service.replica.host.feature_kinds
    targets = service.replica.host.targets
    converted = {
        name: {"type": ["string", "number", "boolean", "null"], "description": f"A {role}."}
        for name, role in service.replica.host.converted.items()
        if role != "category" and name in kinds
    }
    y: dict[str, Any] = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
    prediction: dict[str, Any] = OPTIONAL
    if service.replica.host.task == "classes":
        y, prediction = _labels(service)
    elif targets:
        missing = {**y, "type": ["number", "null"]}
        known = [{"required": [name], "properties": {name: NUMBER}} for name in targets]
        y = {**_closed(dict.fromkeys(targets, missing)), "anyOf": known}
        prediction = _closed(dict.fromkeys(targets, OPTIONAL), targets)
    features: dict[str, Any] = {
        "type": "object",
        "properties": {name: KINDS.get(kind, {}) for name, kind in kinds.items()} | converted,
        "minProperties": 1,
        "description": "Features by name; null or absent where a value is missing.",
    }
    if kinds and not service.settings.new_features:
        features["additionalProperties"] = False
    identifier = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
    weight = {"type": "number", "exclusiveMinimum": 0, "maximum": HEAVIEST}
    row = {"x": _ref("Features")}
    labelled = {**row, "y": _ref("Target"), "w": weight, "id": identifier}
    return {
        "Features": features,
        "Target": y,
        "Prediction": prediction,
        "PredictRow": _closed({**row, "id": identifier}, ["x"]),
        "PredictRows": _many("rows", "PredictRow", service),
        "LearnRow": _closed(labelled, ["x", "y"]),
        "LearnRows": _many("rows", "LearnRow", service),
        "Label": _closed({"id": identifier, "y": _ref("Target")}, ["id", "y"]),
        "Labels": _many("labels", "Label", service),
        "Predictions": _predictions(),
        "Learned": _closed(dict.fromkeys(("learned", "duplicates", "rows"), COUNT), ["learned"]),
        "Joined": _closed(
            {
                "learned": COUNT,
                "rows": COUNT,
                **{name: {"type": "array", "items": TEXT} for name in ("duplicates", "unknown")},
            },
            ["learned", "duplicates", "unknown"],
        ),
        "Status": _closed({"status": TEXT}, ["status"]),
        "Model": {
            "type": "object",
            "properties": {"kind": TEXT, "task": TEXT, "rows": COUNT, "bytes": COUNT},
            "required": ["kind", "rows", "schema"],
        },
        "Tree": _closed(
            {
                "member": COUNT,
                "members": COUNT,
                "nodes": {"type": "array", "items": {"type": "object"}},
            },
            ["nodes"],
        ),
        "Error": _error(),
    }


def _labels(service: Service) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the label of a class is, and a predicted one."""
    classes = [*service.replica.host.classes]
    if classes and not service.settings.new_classes:
        return {"enum": classes}, {"enum": [*classes, None]}
    own = {**CATEGORY, "type": ["string", "integer", "boolean"]}
    return own, {"type": [*own["type"], "null"]}


def _predictions() -> dict[str, Any]:
    shares = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}}
    values = {"type": "array", "items": _ref("Prediction")}
    interval = _closed({"lower": values, "upper": values}, ["lower", "upper"])
    return _closed(
        {
            "predictions": values,
            "model_rows": COUNT,
            "classes": {"type": "array", "items": {"type": ["string", "integer", "boolean"]}},
            "probabilities": {"type": "array", "items": shares},
            "intervals": {"type": "object", "additionalProperties": interval},
            "explanations": {"type": "array", "items": {"type": "object"}},
        },
        ["predictions", "model_rows"],
    )


def _error() -> dict[str, Any]:
    own = {"status": {"type": "integer"}, "reason": TEXT, "message": TEXT, "request_id": TEXT}
    return _closed({"error": _closed(own, list(own))}, ["error"])


def _closed(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


def _many(name: str, item: str, service: Service) -> dict[str, Any]:
    most = service.settings.limits.rows
    text = f"At most {most:,} items; more are answered by 413."
    items = {"type": "array", "items": _ref(item), "minItems": 1, "description": text}
    return _closed({name: items}, [name])


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


# -- paths -----------------------------------------------------------------------------------------


def _paths(service: Service) -> dict[str, Any]:
    levels = service.replica.host.levels
    flag = {"type": "string", "enum": ["true", "false"]}
    shown = [*(f"{level:g}" for level in levels), "true", "false"] if levels else ["false"]
    intervals = _query("intervals", {"type": "string", "enum": shown}, "Prediction intervals.")
    explains = flag if service.replica.host.explains else {"type": "string", "enum": ["false"]}
    explain = _query("explain", explains, "Explain the predictions of the first 100 rows.")
    column = TEXT
    ids = _query("id", column, "In Arrow streams, the column of identifiers.")
    target = _query("target", column, "In Arrow streams, the column of targets.")
    weight = _query("weight", column, "In Arrow streams, the column of weights.")
    answer = {**_content(JSON, "Predictions"), **_binary(ARROW)}
    secured = service.settings.learn_token is not None
    learn = {
        "/learn": {
            "post": _posting(
                "Learn rows with their labels.",
                ("LearnRow", "LearnRows"),
                _content(JSON, "Learned"),
                [ids, target, weight],
                secured=secured,
            )
        },
        "/labels": {
            "post": _posting(
                "Learn rows that were predicted before, by their ids.",
                ("Label", "Labels"),
                _content(JSON, "Joined"),
                [],
                secured=secured,
                arrow=False,
            )
        },
    }
    return {
        "/predict": {
            "post": _posting(
                "Predict one row or many. Predictions of rows with an id are pending until labels arrive.",
                ("PredictRow", "PredictRows"),
                answer,
                [intervals, explain, ids],
            )
        },
        **(learn if service.settings.can_learn else {}),
        "/model": {"get": _getting("Summary, parameters and schema.", _content(JSON, "Model"))},
        "/model/tree": {
            "get": _getting(
                "The nodes of a tree.",
                _content(JSON, "Tree"),
                [
                    _query(
                        "member", {"type": "integer", "minimum": 0, "maximum": 999}, "Which tree."
                    )
                ],
            )
        },
        "/healthz": {"get": _getting("Liveness.", _content(JSON, "Status"), [], False)},
        "/readyz": {"get": _getting("Readiness.", _content(JSON, "Status"), [], False)},
        "/metrics": {
            "get": _getting(
                "Metrics for Prometheus.", {CONTENT_TYPE.partition(";")[0]: {"schema": TEXT}}
            )
        },
        "/openapi.json": {"get": _getting("This description.", {JSON: {"schema": {}}})},
    }


def _posting(
    summary: str,
    bodies: tuple[str, str],
    answer: dict[str, Any],
    parameters: list[Any],
    *,
    secured: bool = False,
    arrow: bool = True,
) -> dict[str, Any]:
    body: dict[str, Any] = {JSON: {"schema": {"oneOf": [_ref(name) for name in bodies]}}}
    if arrow:
        body |= _binary(ARROW)
    found: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters,
        "requestBody": {"required": True, "content": body},
        "responses": {"200": {"description": "Done.", "content": answer}, **_errors(ROW_ERRORS)},
    }
    if secured:
        found["security"] = [{"token": []}]
    return found


def _getting(
    summary: str,
    answer: dict[str, Any],
    parameters: list[Any] | None = None,
    secured: bool = True,
) -> dict[str, Any]:
    errors = READ_ERRORS if not parameters else (*READ_ERRORS, 404, 422)
    found: dict[str, Any] = {
        "summary": summary,
        "parameters": parameters or [],
        "responses": {"200": {"description": "Found.", "content": answer}, **_errors(errors)},
    }
    if not secured:
        found["security"] = []
    return found


def _errors(statuses: tuple[int, ...]) -> dict[str, Any]:
    return {
        str(status): {"description": ERRORS[status], "content": _content(JSON, "Error")}
        for status in statuses
    }


def _content(media: str, name: str) -> dict[str, Any]:
    return {media: {"schema": _ref(name)}}


def _binary(media: str) -> dict[str, Any]:
    return {media: {"schema": {"type": "string", "contentEncoding": "binary"}}}


def _query(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": text}
