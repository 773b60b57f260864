"""From a path to a route. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from headwater.common.errors import short_repr
from headwater.server.http_error import HttpError
from headwater.server.names import NAMES
from headwater.server.route import Route


@dataclass(frozen=True)
class Match:
    """A route, and the texts of its names: not parsed yet, for who may not ask is told nothing about them."""

    route: Route
    texts: Mapping[str, str]

    def names(self) -> dict[str, Any]:
        """Return the parsed names. Raises HttpError 400."""
        found = {}
        for name, text in self.texts.items():
            try:
                found[name] = NAMES[name](text)
            except ValueError as error:
                raise HttpError(
                    400, f"Cannot resolve path parameter ({name}) from value {short_repr(text)}; expected {error}."
                ) from None
        return found


class Router:
    """Finds routes by method and path. Literal segments win over names."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._by_length: dict[int, list[Route]] = {}
        for route in self.routes:
            self._by_length.setdefault(len(route.segments), []).append(route)
        for each in self._by_length.values():
            each.sort(key=lambda route: [segment.startswith(":") for segment in route.segments])

    def find(self, method: str, raw_path: bytes) -> Match:
        """Return the route. Raises HttpError 404 if there is no such path, 405 if it knows other methods only."""
        segments = _segments(raw_path)
        allowed: list[str] = []
        for route in self._by_length.get(len(segments), ()):
            texts = _texts(route.segments, segments)
            if texts is None:
                continue
            if route.method == ("GET" if method == "HEAD" else method):
                return Match(route, texts)
            allowed.append(route.method)
        if allowed:
            names = ", ".join(sorted({*allowed, *(["HEAD"] if "GET" in allowed else [])}))
            raise HttpError(405, f"method {method} is not allowed here; allowed: {names}", {"Allow": names})
        raise HttpError(404, f"Not found: /{short_repr('/'.join(segments)).strip(chr(39))}")


def _segments(raw_path: bytes) -> tuple[str, ...]:
    """Split before decoding, so that a name may contain an escaped slash. The prefix `/v1` is optional."""
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw_path.split(b"/")[1:]]
    except UnicodeDecodeError:
        raise HttpError(400, "the path is not UTF-8") from None
    if parts and parts[0] == "v1":
        parts = parts[1:]
    while parts and parts[-1] == "":
        parts.pop()
    return tuple(parts)


def _texts(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    """Return {name: text} if the segments fit the pattern."""
    texts = {}
    for wanted, found in zip(pattern, segments, strict=True):
        if wanted.startswith(":"):
            texts[wanted[1:]] = found
        elif wanted != found:
            return None
    return texts
