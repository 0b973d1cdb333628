"""The OpenAPI 3.1 document of the vendor API, with the problems that each call can return."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from service.serving.vendor_api.problems import Kind, Problem
from service.serving.web.guard import PROBLEM_MEDIA_TYPE

_SCHEMA = {"$ref": "#/components/schemas/Problem"}
_ALWAYS = (
    Kind.MALFORMED,
    Kind.UNAUTHORIZED,
    Kind.TOO_SLOW,
    Kind.TOO_LARGE,
    Kind.INVALID,
    Kind.TOO_MANY_CALLS,
    Kind.TOO_MANY_LOGINS,
    Kind.INTERNAL,
    Kind.UNAVAILABLE,
)
_CHANGING = (
    Kind.BAD_IDEMPOTENCY_KEY,
    Kind.UNSUPPORTED_MEDIA_TYPE,
    Kind.STILL_RUNNING,
    Kind.KEY_REUSED,
)
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A new key of your choice. A repeated call with the same key is done once, and gets "
    "the same response for a day. Calls without a key are safe to repeat, too.",
    "schema": {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$", "minLength": 1, "maxLength": 255},
}

_RETRY_AFTER = {"description": "seconds after which to try again", "schema": {"type": "integer"}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {
        "headers": {
            "WWW-Authenticate": {"description": "asks for a bearer token", "schema": {"type": "string"}}
        }
    },
    429: {"headers": {"Retry-After": _RETRY_AFTER}},
    503: {"headers": {"Retry-After": _RETRY_AFTER}},
}

Responses = dict[int | str, dict[str, Any]]


def problems(*kinds: Kind, changes: bool = False) -> Responses:
    """Problems that a call can return, including those of every call, or of every call with changes."""
    by_status: dict[int, list[Kind]] = defaultdict(list)
    for kind in (*_ALWAYS, *(_CHANGING if changes else ()), *kinds):
        by_status[kind.status].append(kind)
    return {
        status: {
            "description": "; ".join(f"`{kind.word}`: {kind.detail}" for kind in several),
            "content": {PROBLEM_MEDIA_TYPE: {"schema": _SCHEMA}},
            **_HEADERS.get(status, {}),
        }
        for status, several in sorted(by_status.items())
    }


def describe(api: FastAPI, *bodies: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI document, with schemas of bodies that no route declares."""
    document = get_openapi(
        title=api.title,
        version=api.version,
        openapi_version="3.1.0",
        description=api.description,
        routes=api.routes,
        servers=api.servers,
    )
    components = document["components"]
    schemas = components["schemas"]
    models: list[type[BaseModel]] = [Problem, *bodies]
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= {**schema.pop("$defs", {}), model.__name__: schema}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for method, call in path.items():
            if method == "post":
                call.setdefault("parameters", []).append(_IDEMPOTENCY_KEY)
    return document
