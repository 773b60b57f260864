"""What was asked for and takes its time: savepoints, checkpoints, rescaling. A client asks again by the id it got."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from headwater.common.errors import HeadwaterError
from headwater.server.http_error import HttpError

MOST_KEPT = 1000
"""Results that are kept. The oldest are forgotten first; what still runs is never forgotten."""


@dataclass(frozen=True)
class _Key:
    operation: str
    job_id: str
    trigger_id: str


class Triggers:
    """Operations under way and their results, by kind of operation and job."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[_Key, asyncio.Task[Any]] = OrderedDict()

    def start(self, operation: str, job_id: str, work: Awaitable[Any], trigger_id: str | None = None) -> dict[str, str]:
        """Begin the work and return Flink's answer to that. An id that the client chose names one operation only."""
        key = _Key(operation, job_id, trigger_id or secrets.token_hex(16))
        if key not in self._tasks:
            self._forget()
            self._tasks[key] = asyncio.ensure_future(_result(work))
        elif asyncio.iscoroutine(work):
            work.close()
        return {"request-id": key.trigger_id}

    def status(self, operation: str, job_id: str, trigger_id: str) -> dict[str, Any]:
        """Return Flink's answer to a question about a trigger. Raises HttpError 404."""
        task = self._tasks.get(_Key(operation, job_id, trigger_id))
        if task is None:
            where = f" for job {job_id}" if job_id else ""
            raise HttpError(404, f"There is no {operation} operation with triggerId={trigger_id}{where}.")
        if not task.done():
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        return {"status": {"id": "COMPLETED"}, "operation": task.result()}

    def _forget(self) -> None:
        for key in [key for key, task in self._tasks.items() if task.done()][
            : max(0, len(self._tasks) - MOST_KEPT + 1)
        ]:
            del self._tasks[key]
        if len(self._tasks) >= MOST_KEPT:
            raise HttpError(429, f"{MOST_KEPT} operations are under way; wait for one of them", {"Retry-After": "5"})


async def _result(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except HeadwaterError as error:
        return {"failure-cause": {"class": type(error).__name__, "stack-trace": str(error), "serialized-throwable": ""}}
