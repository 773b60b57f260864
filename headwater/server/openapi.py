"""The OpenAPI document, made of the table that routes requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from headwater.server.names import NAMES, index
from headwater.server.route import Access, Field, Kind, Route
from headwater.version import __version__

_ERROR = {"$ref": "#/components/responses/Error"}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document of OpenAPI 3.0. The page and its files are not part of it."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.access is Access.PUBLIC:
            continue
        path = re.sub(r":(\w+)", r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {"title": "headwater REST API", "version": __version__, "description": "Flink's, and a few more."},
        "servers": [{"url": "/"}, {"url": "/v1"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Error": {
                    "description": "what was wrong",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}},
                }
            },
            "schemas": {
                "Errors": {
                    "type": "object",
                    "required": ["errors"],
                    "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    names = re.findall(r":(\w+)", route.path)
    found: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": _name_schema(name)} for name in names),
            *(
                {
                    "name": each.name,
                    "in": "query",
                    "required": False,
                    "description": each.description,
                    "schema": _schema(each),
                }
                for each in route.query
            ),
        ],
        "responses": {
            str(route.status): {"description": "the answer", "content": {route.answer: {"schema": {}}}},
            "4XX": _ERROR,
            "503": _ERROR,
        },
    }
    found["security"] = [{"token": []}, {}]
    if route.file_field:
        file = {"type": "object", "properties": {route.file_field: {"type": "string", "format": "binary"}}}
        found["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": file}}}
    if route.body is not None:
        required = [each.name for each in route.body if each.required]
        schema = {"type": "object", "properties": {each.name: _described(each) for each in route.body}}
        if required:
            schema["required"] = required
        found["requestBody"] = {"required": bool(required), "content": {"application/json": {"schema": schema}}}
    return found


def _operation_id(route: Route) -> str:
    return "_".join([route.method.lower(), *re.findall(r"\w+", route.path)])


def _name_schema(name: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0} if NAMES[name] is index else {"type": "string"}


def _schema(each: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": each.kind.value}
    if each.kind is Kind.TEXTS:
        schema["items"] = {"type": "string"}
    if each.choices:
        schema["enum"] = list(each.choices)
    return schema


def _described(each: Field) -> dict[str, Any]:
    return {**_schema(each), "description": each.description}
