"""Values of Redis by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.common.callables import unfit
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.lookup import Lookup
from headwater.datastream.connectors.redis.client import RedisClient, checked_url


def _get(key: Any) -> tuple[Any, ...]:
    return ("GET", key)


class RedisLookup(Lookup):
    """Runs `command(key)` for each key, all in one round trip: ("GET", key), ("HGETALL", key), ...

    Values are what Redis answers: bytes, and for HGETALL a dict of bytes; None for what is not there.
    """

    def __init__(
        self,
        url: str,
        command: Callable[[Any], Sequence[Any]] = _get,
        cache_size: int = 100_000,
        cache_seconds: float = 60.0,
    ) -> None:
        super().__init__(cache_size, cache_seconds)
        library("redis", "Redis", "redis")
        if found := unfit(command, 1):
            raise ConfigurationError(f"RedisLookup: command: expected a function of a key, found {found}")
        self._url = checked_url(url, "RedisLookup")
        self._command = command
        self._client: RedisClient | None = None

    def fetch(self, keys: Sequence[Any]) -> Sequence[Any]:
        if self._client is None:
            self._client = RedisClient("RedisLookup", self._url)
        pipeline = self._client.client.pipeline(transaction=False)
        for key in keys:
            pipeline.execute_command(*self._command(key))
        try:
            answers: list[Any] = pipeline.execute()
        except library("redis", "Redis", "redis").RedisError as error:
            raise self._client.failed("cannot look up", error) from None
        return [None if answer == {} else answer for answer in answers]

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_client": None}
