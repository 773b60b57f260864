"""The fields of a query, checked before they are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.common.errors import short_repr
from headwater.common.query_error import QueryError, QueryProblem
from headwater.state.query.json_form import bound_from_json

Json = dict[str, Any]

MAX_LIMIT = 10_000
DEFAULT_LIMIT = 100
MAX_PAGE_BYTES = 4 << 20


def text(request: Json, name: str) -> str:
    found = request.get(name)
    if not isinstance(found, str):
        raise _bad(name, found, "text")
    return found


def integer(request: Json, name: str) -> int:
    found = request.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _bad(name, found, "a whole number")
    return found


def texts_or_keys(request: Json, name: str, most: int) -> list[Any]:
    found = request.get(name)
    if not isinstance(found, list) or len(found) > most:
        raise _bad(name, found, f"a list of at most {most} keys")
    return found


@dataclass(frozen=True)
class Scan:
    """Which keys a scan takes, by their sort keys."""

    limit: int
    at_least: Any = None
    below: Any = None
    after: Any = None
    prefix: str | None = None
    max_bytes: int = MAX_PAGE_BYTES

    @classmethod
    def of(cls, request: Json) -> Scan:
        limit = DEFAULT_LIMIT if request.get("limit") is None else integer(request, "limit")
        if not 1 <= limit <= MAX_LIMIT:
            raise _bad("limit", limit, f"a number from 1 to {MAX_LIMIT}")
        prefix = request.get("prefix")
        if prefix is not None and not isinstance(prefix, str):
            raise _bad("prefix", prefix, "text")
        return cls(limit, _order(request, "from"), _order(request, "to"), _order(request, "after"), prefix)

    def takes(self, order: Any) -> bool:
        if self.prefix is not None and not (order[0] == 2 and order[1].startswith(self.prefix)):
            return False
        return (
            (self.at_least is None or order >= self.at_least)
            and (self.below is None or order < self.below)
            and (self.after is None or order > self.after)
        )


def _order(request: Json, name: str) -> Any:
    """The sort key of a bound. It comes as a list with the key in it: `null` is a key, too."""
    found = request.get(name)
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 1:
        raise _bad(name, found, "a list with one key in it")
    return bound_from_json(found[0])


def _bad(name: str, found: object, expected: str) -> QueryError:
    return QueryError(QueryProblem.BAD_REQUEST, f"'{name}' is {short_repr(found)}; expected {expected}")
