"""The OpenAPI document: every route is in it, and every name in it means something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwater.server.openapi import document
from headwater.server.route import Access
from headwater.server.routes import ROUTES
from tests.unit.server.rest_server import serving

DOCUMENT = json.loads(json.dumps(document(ROUTES)))


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_is_in_it_and_nothing_else() -> None:
    expected = {(re.sub(r":(\w+)", r"{\1}", r.path), r.method.lower()) for r in ROUTES if r.access is not Access.PUBLIC}
    assert {(path, method) for path, method, _ in operations()} == expected
    assert not [path for path, _, _ in operations() if "dashboard" in path]


def test_names_ids_and_references_are_complete() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(ids)) == len(ids)
    for path, _, operation in operations():
        declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert declared == set(re.findall(r"{(\w+)}", path)) and operation["summary"]
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT)):
        found = DOCUMENT
        for part in reference.split("/"):
            found = found[part]


def test_it_is_served_and_says_how_to_upload(tmp_path: Path) -> None:
    with serving(tmp_path) as rest:
        assert rest.get("/openapi.json") == DOCUMENT
    body = DOCUMENT["paths"]["/jars/upload"]["post"]["requestBody"]["content"]
    assert "jarfile" in body["multipart/form-data"]["schema"]["properties"]
