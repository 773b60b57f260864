"""The client of an application: the current value of a key of a running job, in a millisecond."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.job_client import JobClient
from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.queryable_state.http_locator import HttpLocator
from headwater.queryable_state.reader import COMMITTED, Page, StateReader, StateValue
from headwater.queryable_state.series import Series, read_series
from headwater.queryable_state.sql import SqlResult, run_sql
from headwater.runtime.job.handle import LocalJobClient
from headwater.state.descriptors import StateDescriptor
from headwater.state.query.json_form import value_from_json


class QueryableStateClient:
    """Reads state of the jobs of one job server, or of a job that serves itself. Thread safe; a context manager.

    It asks the server where a key lives, remembers that, and reads from the slot directly. When a slot has moved, was
    restarted or restores a checkpoint, it asks again and tries again, for `timeout_seconds` at most. So it does when a
    slot has too many readers.

    Values are `committed`: of the last completed checkpoint, labelled with its epoch. With `isolation="live"` they are
    the newest, of an epoch that may yet fail.
    """

    def __init__(
        self, host: str, port: int, token: str | None = None, *, timeout_seconds: float = 10.0, tls: bool = False
    ) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._seconds = timeout_seconds
        self._tls = tls
        self._lock = threading.Lock()
        self._readers: dict[str, StateReader] = {}

    @classmethod
    def of(cls, job_client: JobClient, *, timeout_seconds: float = 10.0) -> QueryableStateClient:
        """Return a client for the job that this program started with `execute_async()`. It needs no server."""
        if not isinstance(job_client, LocalJobClient):
            raise TypeMismatchError(f"expected what execute_async() returned, found {short_repr(job_client)}")
        client = cls("", 0, timeout_seconds=timeout_seconds)
        client._readers[str(job_client.get_job_id())] = StateReader(_OwnJob(job_client), timeout_seconds)
        return client

    # --- by operator and state

    def get(self, job_id: Any, operator: str, state: str, key: Any, *, isolation: str = COMMITTED) -> StateValue:
        """Return the value of one key. Raises `QueryError`: UNKNOWN_KEY if there is none."""
        (found,) = self.get_many(job_id, operator, state, [key], isolation=isolation)
        if not found.found:
            raise QueryError(
                QueryProblem.UNKNOWN_KEY,
                f"state '{state}' of operator '{operator}' has no value for key {key!r} as of epoch {found.epoch}",
            )
        return found

    def get_many(
        self, job_id: Any, operator: str, state: str, keys: Sequence[Any], *, isolation: str = COMMITTED
    ) -> list[StateValue]:
        """Return the values of several keys, in their order: `found` is False where there is none.

        Keys of one slot are of one epoch. Those of several may differ; each value says which it is.
        """
        return [_as_python(each) for each in self.reader(job_id).get(operator, state, keys, isolation)]

    def scan(
        self,
        job_id: Any,
        operator: str,
        state: str,
        *,
        start: Any = None,
        stop: Any = None,
        prefix: str | None = None,
        limit: int = 100,
        page: str | None = None,
        isolation: str = COMMITTED,
    ) -> Page:
        """Return the entries with `start <= key < stop`, or whose keys are text that begins with `prefix`, in order.

        Give `next_page` of the answer as `page` to get those behind. A page token is good for ever.
        """
        found = self.reader(job_id).scan(
            operator, state, start=start, stop=stop, prefix=prefix, limit=limit, page=page, isolation=isolation
        )
        return Page([_as_python(row) for row in found.rows], found.next_page)

    def scan_all(self, job_id: Any, operator: str, state: str, **options: Any) -> Iterator[StateValue]:
        """Yield all entries that `scan` would find, page by page."""
        return map(_as_python, self.reader(job_id).scan_all(operator, state, **options))

    def list_states(self, job_id: Any) -> list[dict[str, Any]]:
        """Return the operators with keyed state, and their states with kinds, types and numbers of keys."""
        return self.reader(job_id).describe()

    def sql(self, job_id: Any, query: str) -> SqlResult:
        """Run `select ... from operator.state ...` over one checkpoint of all slots. Needs `headwater[duckdb]`."""
        return run_sql(self.reader(job_id), query)

    def series(self, job_id: Any, name: str, key: Any, from_ms: int = BEGINNING_MS, to_ms: int = END_MS) -> Series:
        """Return the windows of `key` that share a moment with [from_ms, to_ms): closed ones, and those still open.

        All are of one checkpoint, and each is there once. A key that the series does not know has none.
        """
        found = read_series(self.reader(job_id), name, key, from_ms, to_ms)
        windows = [window._replace(value=value_from_json(window.value)) for window in found.windows]
        return replace(found, windows=windows)

    # --- by queryable name, as in Flink

    def get_kv_state(
        self,
        job_id: Any,
        queryable_state_name: str,
        key: Any,
        key_type_info: Any = None,
        state_descriptor: StateDescriptor | None = None,
    ) -> CompletableFuture[Any]:
        """Return the value of `key` in the state that `set_queryable` or `as_queryable_state` gave this name.

        The name of Flink's Java client. The types are not needed here, and are ignored.
        """
        future: CompletableFuture[Any] = CompletableFuture()
        try:
            operator, state = self.reader(job_id).queryable(queryable_state_name)
            future.set_result(self.get(job_id, operator, state, key).value)
        except QueryError as error:
            future.set_exception(error)
        return future

    # --- life

    def reader(self, job_id: Any) -> StateReader:
        """Return what reads one job, given by its id: a JobID or text."""
        job_id = str(job_id)
        with self._lock:
            reader = self._readers.get(job_id)
            if reader is None:
                if not self._host:
                    raise QueryError(QueryProblem.UNKNOWN_JOB, f"job {job_id} was not started by this program")
                locator = HttpLocator(self._host, self._port, self._token, job_id, self._seconds, tls=self._tls)
                reader = self._readers[job_id] = StateReader(locator, self._seconds)
            return reader

    def shutdown_and_wait(self) -> None:
        """Flink's name for `close`."""
        self.close()

    def close(self) -> None:
        with self._lock:
            readers, self._readers = self._readers, {}
        for reader in readers.values():
            reader.close()

    def __enter__(self) -> QueryableStateClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _OwnJob:
    """Finds the slots of a job whose driver is this process."""

    def __init__(self, client: LocalJobClient) -> None:
        self._client = client

    def locate(self) -> dict[str, Any]:
        return self._client.locate_state()

    def ask_slot(self, stage: int, partition: int, request: dict[str, Any]) -> dict[str, Any]:
        return self._client.ask_slot(stage, partition, request)

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> dict[str, Any]:
        return self._client.read_archive(series, key, from_ms, to_ms, epoch)


def _as_python(found: StateValue) -> StateValue:
    return StateValue(found.key, value_from_json(found.value), found.epoch, found.found)
