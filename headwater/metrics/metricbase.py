"""The interfaces of metrics, as in pyflink.metrics.metricbase."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class Metric(ABC):  # noqa: B024
    """Something that is measured. Metrics are read from another thread than the one that updates them."""


class Counter(Metric):
    """Counts up and down."""

    @abstractmethod
    def inc(self, n: int = 1) -> None: ...

    @abstractmethod
    def dec(self, n: int = 1) -> None: ...

    @abstractmethod
    def get_count(self) -> int: ...


class Meter(Metric):
    """Counts events, and how many there were per second lately."""

    @abstractmethod
    def mark_event(self, value: int = 1) -> None: ...

    @abstractmethod
    def get_count(self) -> int: ...


class Distribution(Metric):
    """Sum, count, least and greatest of the values it was given."""

    @abstractmethod
    def update(self, value: int) -> None: ...


class MetricGroup(ABC):
    """A named place for metrics; what `RuntimeContext.get_metrics_group()` returns.

    A metric that is asked for twice under one name is the same metric.
    """

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group inside this one; with `extra`, a group `name` (a key) with a group `extra` (its value) in it."""

    @abstractmethod
    def counter(self, name: str) -> Counter: ...

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A value that is asked for when metrics are read; `obj` must be quick, and safe to call at any time."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter: ...

    @abstractmethod
    def distribution(self, name: str) -> Distribution: ...
