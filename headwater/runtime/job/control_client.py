"""The client of a job's control socket: sends a request and waits for the answer."""

from __future__ import annotations

import contextlib
import json
from types import TracebackType
from typing import Any, NamedTuple

from headwater.common.errors import HeadwaterError
from headwater.common.query_error import QueryError
from headwater.runtime.job.run_directory import JobCard, RunDirectory


class JobEnd(NamedTuple):
    """How a job ended."""

    status: str
    """FINISHED, CANCELED, FAILED; UNKNOWN if its process died without an answer."""
    problem: str


class Conversation:
    """One request to a running job. A context manager: leaving it early does not cancel the request.

    With `within_seconds`, a job that does not answer in that time is an error: its process may be stopped.
    """

    def __init__(
        self,
        directory: RunDirectory,
        card: JobCard,
        verb: str,
        /,
        within_seconds: float | None = None,
        **arguments: Any,
    ) -> None:
        self._card = card
        self._within_seconds = within_seconds
        if not card.is_here:
            raise HeadwaterError(
                f"job '{card.name}' ({card.job_id[:12]}) runs on host {card.host}; run this command there"
            )
        try:
            self._connection = directory.connect(card)
        except OSError as error:
            raise HeadwaterError(
                f"job '{card.name}' ({card.job_id[:12]}, pid {card.pid}) does not answer: {error.strerror}; it has "
                "just ended, or its process hangs"
            ) from None
        self._connection.settimeout(within_seconds)
        self._lines = self._connection.makefile("rb")
        with contextlib.suppress(OSError):  # the job has just ended: `answer` will say so
            self._connection.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._connection.close()

    def answer(self) -> Any:
        """Wait for the answer, as long as it takes. Raises HeadwaterError if the job answers with an error, or ends."""
        answer = self._next()
        if answer is None:
            raise HeadwaterError(f"job '{self._card.name}' ended before it answered")
        if "query" in answer:
            raise QueryError.from_json(answer["query"])
        if "error" in answer:
            raise HeadwaterError(answer["error"])
        return answer["ok"]

    def end(self) -> JobEnd:
        """Wait for the end of the job. Call it after `answer`, for requests that end the job."""
        last = self._next()
        return JobEnd("UNKNOWN", "") if last is None else JobEnd(last["ended"], last["problem"])

    def _next(self) -> dict[str, Any] | None:
        try:
            line = self._lines.readline()
        except TimeoutError:
            raise HeadwaterError(
                f"job '{self._card.name}' (pid {self._card.pid}) did not answer within {self._within_seconds:g} s; its "
                "process is busy, or stopped"
            ) from None
        except ConnectionError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None


def ask(
    directory: RunDirectory, card: JobCard, verb: str, /, within_seconds: float | None = None, **arguments: Any
) -> Any:
    """Send one request and return the job's answer. Waits as long as that takes, or at most `within_seconds`."""
    with Conversation(directory, card, verb, within_seconds=within_seconds, **arguments) as conversation:
        return conversation.answer()
