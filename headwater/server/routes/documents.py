"""`/openapi.json`: what there is to ask."""

from __future__ import annotations

from typing import Any

from headwater.server.openapi import document
from headwater.server.route import Call, Route


async def openapi(call: Call) -> dict[str, Any]:
    return document(call.services.routes)


ROUTES = (Route("GET", "/openapi.json", openapi, "This document"),)
