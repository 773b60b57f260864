"""Why a query of state was not answered: one error, with a code that programs can tell apart and an HTTP status."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import Enum
from typing import Any

from headwater.common.errors import HeadwaterError


class QueryProblem(Enum):
    """(code, HTTP status). The code is part of the protocol."""

    UNKNOWN_JOB = ("UNKNOWN_JOB", 404)
    UNKNOWN_OPERATOR = ("UNKNOWN_OPERATOR", 404)
    UNKNOWN_STATE = ("UNKNOWN_STATE", 404)
    UNKNOWN_KEY = ("UNKNOWN_KEY", 404)
    BAD_KEY = ("BAD_KEY", 400)
    BAD_REQUEST = ("BAD_REQUEST", 400)
    UNAUTHORIZED = ("UNAUTHORIZED", 401)
    EPOCH_GONE = ("EPOCH_GONE", 410)
    TOO_MANY_READERS = ("TOO_MANY_READERS", 429)
    RESTORING = ("RESTORING", 503)
    NOT_YET = ("NOT_YET", 503)
    NOT_SURE = ("NOT_SURE", 503)
    MOVED = ("MOVED", 503)
    UNREACHABLE = ("UNREACHABLE", 503)
    FAILED = ("FAILED", 500)

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def status(self) -> int:
        return self.value[1]


MAY_HAVE_MOVED = frozenset(
    {QueryProblem.RESTORING, QueryProblem.NOT_SURE, QueryProblem.MOVED, QueryProblem.UNREACHABLE, QueryProblem.NOT_YET}
)
"""Problems that pass: ask again where the key lives, and try again."""


class QueryError(HeadwaterError):
    """A query was not answered. `problem` says why; the text says what was found and what to do."""

    def __init__(self, problem: QueryProblem, text: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(problem, text, retry_after_seconds)
        self.problem = problem
        self.text = text
        self.retry_after_seconds = retry_after_seconds
        """When to try again, if that may help."""

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        return {"code": self.problem.code, "text": self.text, "retry_after": self.retry_after_seconds}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> QueryError:
        problem = QueryProblem.__members__.get(str(found.get("code")), QueryProblem.FAILED)
        return cls(problem, str(found.get("text")), float(found.get("retry_after", 1.0)))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error's text: the names most like `name`, or all that there are."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3)
    if close:
        return f"did you mean {' or '.join(repr(each) for each in close)}?"
    return f"there are: {', '.join(map(repr, names[:20]))}" if names else "there are none"
