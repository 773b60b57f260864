"""The client for programs with an event loop. Each call waits in a thread of its own pool, never in the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.queryable_state.client import QueryableStateClient
from headwater.queryable_state.reader import COMMITTED, Page, StateValue
from headwater.queryable_state.series import Series
from headwater.queryable_state.sql import SqlResult

T = TypeVar("T")


class AsyncQueryableStateClient:
    """As `QueryableStateClient`, with the same calls to be awaited. `max_concurrency` of them run at once."""

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None = None,
        *,
        timeout_seconds: float = 10.0,
        tls: bool = False,
        max_concurrency: int = 32,
    ) -> None:
        self._client = QueryableStateClient(host, port, token, timeout_seconds=timeout_seconds, tls=tls)
        self._pool = ThreadPoolExecutor(max_concurrency, thread_name_prefix="state-client")

    async def get(self, job_id: Any, operator: str, state: str, key: Any, *, isolation: str = COMMITTED) -> StateValue:
        return await self._run(lambda: self._client.get(job_id, operator, state, key, isolation=isolation))

    async def get_many(
        self, job_id: Any, operator: str, state: str, keys: Sequence[Any], *, isolation: str = COMMITTED
    ) -> list[StateValue]:
        return await self._run(lambda: self._client.get_many(job_id, operator, state, keys, isolation=isolation))

    async def scan(self, job_id: Any, operator: str, state: str, **options: Any) -> Page:
        return await self._run(lambda: self._client.scan(job_id, operator, state, **options))

    async def list_states(self, job_id: Any) -> list[dict[str, Any]]:
        return await self._run(lambda: self._client.list_states(job_id))

    async def series(
        self, job_id: Any, name: str, key: Any, from_ms: int = BEGINNING_MS, to_ms: int = END_MS
    ) -> Series:
        return await self._run(lambda: self._client.series(job_id, name, key, from_ms, to_ms))

    async def sql(self, job_id: Any, query: str) -> SqlResult:
        return await self._run(lambda: self._client.sql(job_id, query))

    async def get_kv_state(self, job_id: Any, queryable_state_name: str, key: Any) -> Any:
        return await self._run(lambda: self._client.get_kv_state(job_id, queryable_state_name, key).result())

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def close(self) -> None:
        self._pool.shutdown(wait=False)
        self._client.close()

    async def __aenter__(self) -> AsyncQueryableStateClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
