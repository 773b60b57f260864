"""Readers of the state of running jobs, one per job, for the routes. They wait for slots in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.responses import JSONResponse, Response

from headwater.common.query_error import MAY_HAVE_MOVED, QueryError, QueryProblem
from headwater.queryable_state.control_locator import ControlLocator
from headwater.queryable_state.reader import StateReader
from headwater.server.cluster import Job, RunningJob
from headwater.server.http_error import HttpError

T = TypeVar("T")

MOST_AT_ONCE = 64
SECONDS = 2.0
"""So long a request tries to find a slot that has moved. Then the client is told when to come back."""


class QueryHttpError(HttpError):
    """A query that was not answered: the text as always, and the code for programs."""

    def __init__(self, error: QueryError) -> None:
        status = error.problem.status
        headers = {"Retry-After": str(max(1, round(error.retry_after_seconds)))} if status in (429, 503) else {}
        super().__init__(status, error.text, headers)
        self._code = error.problem.code

    def response(self) -> Response:
        return JSONResponse({"errors": [self.text], "code": self._code}, self.status, self.headers)


class StateReaders:
    """Of one server. Used from its event loop only."""

    def __init__(self) -> None:
        self._readers: dict[tuple[str, int], StateReader] = {}
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="state")
        self._running = 0

    async def read(self, job: Job, read: Callable[[StateReader], T]) -> T:
        """Return what `read` does, in a thread. Raises QueryHttpError."""
        if not isinstance(job, RunningJob):
            raise QueryHttpError(
                QueryError(QueryProblem.UNKNOWN_JOB, f"job {job.job_id} has ended: it has no state to be read")
            )
        if self._running >= MOST_AT_ONCE:
            raise QueryHttpError(
                QueryError(QueryProblem.TOO_MANY_READERS, f"{MOST_AT_ONCE} queries are under way; ask again later")
            )
        reader = self._reader(job)
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, read, reader)
        except QueryError as error:
            raise QueryHttpError(error) from None
        finally:
            self._running -= 1

    def _reader(self, job: RunningJob) -> StateReader:
        card = job.card
        reader = self._readers.get((card.job_id, card.pid))
        if reader is None:
            for known in [known for known in self._readers if known[0] == card.job_id]:
                self._readers.pop(known).close()  # of an earlier driver
            locator = ControlLocator(job.directory, card)
            reader = self._readers[card.job_id, card.pid] = StateReader(locator, SECONDS, retried=MAY_HAVE_MOVED)
        return reader
