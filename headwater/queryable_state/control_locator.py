"""Finds a job's slots through the control socket of its driver, on the driver's host."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import HeadwaterError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.runtime.slot.query.requests import Json

ASK_SECONDS = 30.0


class ControlLocator:
    """One running job, by its card."""

    def __init__(self, directory: RunDirectory, card: JobCard) -> None:
        self._directory = directory
        self._card = card

    def locate(self) -> Json:
        found: Json = self._ask("locate_state")
        return found

    def ask_slot(self, stage: int, partition: int, request: Json) -> Json:
        found: Json = self._ask("ask_slot", stage=stage, partition=partition, query=request)
        return found

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> Json:
        found: Json = self._ask("read_archive", series=series, key=key, from_ms=from_ms, to_ms=to_ms, epoch=epoch)
        return found

    def _ask(self, verb: str, **arguments: Any) -> Any:
        try:
            return ask(self._directory, self._card, verb, within_seconds=ASK_SECONDS, **arguments)
        except QueryError:
            raise
        except HeadwaterError as error:
            raise QueryError(QueryProblem.UNREACHABLE, str(error)) from None
