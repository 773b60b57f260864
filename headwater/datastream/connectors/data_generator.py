"""Records made from their index, as fast as asked for: for tests, demos and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.common.callables import unfit
from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.operators.results import taken

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy"]


class GeneratorFunction:
    """Makes a record from its index. Any callable will do as well."""

    def map(self, value: int) -> Any:
        """The record with index `value`. Must depend on nothing else: after a failure it is asked again."""
        raise NotImplementedError


class RateLimiterStrategy:
    """How many records per second a source makes, over all its splits."""

    def __init__(self, records_per_second: float | None) -> None:
        if records_per_second is not None and not records_per_second > 0:
            raise ConfigurationError(f"rate limit is {records_per_second!r}; expected more than 0 records per second")
        self.records_per_second = records_per_second

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        return RateLimiterStrategy(records_per_second)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        return RateLimiterStrategy(None)


class DataGeneratorSource(Source):
    """`generator_function(0)`, `generator_function(1)`, … up to `count` records; without end if `count` is None.

    Split i of n makes the records i, i + n, i + 2n, … so that all splits advance through the indices together: where
    the index stands for time, no split runs ahead of the others. With parallelism 1 all records are in order.
    """

    def __init__(
        self,
        generator_function: Callable[[int], Any] | GeneratorFunction,
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: Any = None,
        *,
        rate_per_second: float | None = None,
    ) -> None:
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise ConfigurationError(f"DataGeneratorSource: count is {count!r}; expected None or a number >= 0")
        if rate_limiter_strategy is not None and rate_per_second is not None:
            raise ConfigurationError("DataGeneratorSource: give rate_limiter_strategy or rate_per_second, not both")
        if found := unfit(getattr(generator_function, "map", generator_function), 1):
            hint = "; did you forget to call it?" if isinstance(generator_function, type) else ""
            raise ConfigurationError(
                f"DataGeneratorSource: {found} is not a generator function; expected a callable that takes the index, "
                f"or an object with such a method `map`{hint}"
            )
        if rate_limiter_strategy is not None and not isinstance(rate_limiter_strategy, RateLimiterStrategy):
            raise ConfigurationError(
                f"DataGeneratorSource: rate_limiter_strategy is {rate_limiter_strategy!r}; expected one such as "
                "RateLimiterStrategy.per_second(1000)"
            )
        self.generator_function = generator_function
        self.count = count
        self.type_info = type_info
        self.bounded = count is not None
        strategy = rate_limiter_strategy or RateLimiterStrategy(rate_per_second)
        self.rate_per_second = strategy.records_per_second

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        parts = max(1, parallelism if self.count is None else min(parallelism, self.count))
        return [Split(f"{part}-of-{parts}", (part, parts)) for part in range(parts)]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        part, parts = split.payload
        function: Any = self.generator_function
        generate: Callable[[int], Any] = getattr(function, "map", function)
        stop = 2**63 - 1 if self.count is None else self.count
        return _GeneratorReader(generate, range(part if position is None else position, stop, parts))


class _GeneratorReader(SplitReader):
    """Reads one split. The position is the next index."""

    gives_away = True

    def __init__(self, generate: Callable[[int], Any], indices: range) -> None:
        self._generate = generate
        self._left = indices

    def read_batch(self, max_records: int) -> list[Any] | None:
        indices = self._left[:max_records]
        if not indices:
            return None
        records = taken(indices, self._generate)
        self._left = self._left[max_records:]
        return records

    def position(self) -> int:
        return self._left.start
