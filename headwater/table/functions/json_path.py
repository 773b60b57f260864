"""SQL's JSON paths: `lax $.store.book[0].title`, `strict $['a'].*`, `$..name`. Without a word they are strict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from headwater.common.errors import ComputationError

_STEP = re.compile(r"\.\.(\w+|\*)|\.(\*|[\w$-]+)|\[\s*(\*|-?\d+|'(?:[^']*)'|\"(?:[^\"]*)\")\s*\]")


class PathNotFound(LookupError):
    """A strict path leads nowhere."""


@dataclass(frozen=True)
class JsonPath:
    strict: bool
    steps: tuple[tuple[str, Any], ...]
    """(kind, argument): key, index, every, deep."""

    @property
    def definite(self) -> bool:
        """Whether the path leads to one place at most."""
        return all(kind in ("key", "index") for kind, _ in self.steps)

    def leads_to_no_elements(self, document: Any) -> bool:
        """Whether all but the last step lead somewhere, and the last asks for elements."""
        if self.definite:
            return False
        try:
            return bool(JsonPath(self.strict, self.steps[:-1]).find(document))
        except PathNotFound:
            return False

    def find(self, document: Any) -> list[Any]:
        """What is at the path. A strict one that leads nowhere raises PathNotFound."""
        found = [document]
        for kind, argument in self.steps:
            found = [each for value in found for each in _step(value, kind, argument)]
            if not found:
                if self.strict:
                    raise PathNotFound(f"no value at {argument!r}")
                return []
        return found


def _step(value: Any, kind: str, argument: Any) -> Iterator[Any]:
    if (kind == "key" and isinstance(value, dict) and argument in value) or (
        kind == "index" and isinstance(value, list) and -len(value) <= argument < len(value)
    ):
        yield value[argument]
    elif kind == "every" and isinstance(value, dict | list):
        yield from value.values() if isinstance(value, dict) else value
    elif kind == "deep":
        yield from _deep(value, argument)


def _deep(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if key in (name, "*"):
                yield inner
            yield from _deep(inner, key)
    elif isinstance(value, list):
        for inner in value:
            if key == "*":
                yield inner
            yield from _deep(inner, key)


@lru_cache(maxsize=1000)
def parse_path(text: str) -> JsonPath:
    """Read a path. ComputationError if it is malformed."""
    mode = re.match(r"\s*(lax|strict)\s+", text, re.IGNORECASE)
    rest = text[mode.end() :] if mode else text.strip()
    strict = mode is None or mode.group(1).lower() == "strict"
    if not rest.startswith("$"):
        raise ComputationError(f"JSON path '{text}': expected it to begin with $")
    at, steps = 1, []
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ComputationError(
                f"JSON path '{text}': cannot read '{rest[at:]}'; known are .key, [n], [*], .* and ..key"
            )
        steps.append(_parsed(*match.groups()))
        at = match.end()
    return JsonPath(strict, tuple(steps))


def _parsed(deep: str | None, key: str | None, item: str | None) -> tuple[str, Any]:
    if deep is not None:
        return "deep", deep
    if key is not None:
        return ("every", None) if key == "*" else ("key", key)
    assert item is not None
    if item == "*":
        return "every", None
    return ("key", item[1:-1]) if item[0] in "'\"" else ("index", int(item))
