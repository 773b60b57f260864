"""Looking things up in another system, with a cache: for functions, and for asynchronous I/O."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.operators.functions.asynchronous import AsyncFunction


class Lookup(ABC):
    """Values by key. Pickled to the tasks; connects there, at the first key.

    Looked-up values change without the job: a record that is processed again may find another one. What must be the
    same after a failure belongs into state.
    """

    def __init__(self, cache_size: int = 100_000, cache_seconds: float = 60.0) -> None:
        """:param cache_size: so many keys are remembered, the last used ones; 0: none.

        :param cache_seconds: for so long; also that there is no value.
        """
        if cache_size < 0 or cache_seconds < 0:
            raise ConfigurationError(
                f"{type(self).__name__}: cache_size {cache_size} and cache_seconds {cache_seconds} must not be negative"
            )
        self._cache_size = cache_size
        self._cache_seconds = cache_seconds
        self._cache: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self.asked = 0
        """Keys that the other system was asked for."""

    @abstractmethod
    def fetch(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Ask the other system: a value for each key, None where there is none. Raises ExternalSystemError."""

    def lookup(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key, None where there is none. Asks once for all that are not remembered."""
        now, cache = time.monotonic(), self._cache
        found: dict[Any, Any] = {}
        missing: dict[Any, None] = {}
        for key in keys:
            entry = cache.get(key)
            if entry is not None and entry[0] > now:
                cache.move_to_end(key)
                found[key] = entry[1]
            else:
                missing[key] = None
        if missing:
            wanted = list(missing)
            self.asked += len(wanted)
            for key, value in zip(wanted, self.fetch(wanted), strict=True):
                found[key] = value
                if self._cache_size:
                    cache[key] = (now + self._cache_seconds, value)
                    cache.move_to_end(key)
            while len(cache) > self._cache_size:
                cache.popitem(last=False)
        return [found[key] for key in keys]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cache": OrderedDict()}


class AsyncLookup(AsyncFunction):
    """For `AsyncDataStream`: looks up the key of each record, and emits what `join` makes of both (None: nothing).

    The requests of all records that are under way at once are one request.
    """

    def __init__(
        self, lookup: Lookup, key_of: Callable[[Any], Any], join: Callable[[Any, Any], Any] = lambda a, b: (a, b)
    ) -> None:
        self._lookup = lookup
        self._key_of = key_of
        self._join = join
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []

    async def async_invoke(self, value: Any) -> list[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((self._key_of(value), answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._ask)
        joined = self._join(value, await answer)
        return [] if joined is None else [joined]

    def _ask(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            values = self._lookup.lookup([key for key, _ in waiting])
        except Exception as error:
            for _, answer in waiting:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), value in zip(waiting, values, strict=True):
            if not answer.done():  # its time may be over
                answer.set_result(value)
