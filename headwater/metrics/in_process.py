"""Metrics that live in one process and are read as plain values.

A snapshot is {path: value}, the path's parts joined by '.'; the value names its kind::

    counter       {"kind": "counter", "count": 3}
    gauge         {"kind": "gauge", "value": 7}
    meter         {"kind": "meter", "count": 3, "rate": 0.05}
    distribution  {"kind": "distribution", "count": 2, "sum": 9, "min": 4, "max": 5}

Snapshots of the partitions of an operator are merged with `merge_snapshots`.

A job reports what each epoch added (`take_delta`), and the driver adds up the deltas of completed epochs (`add_delta`):
an attempt that failed, or a worker that died, counts nothing. A job that goes back to its last checkpoint takes back
what it has counted since.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

from headwater.common.errors import ConfigurationError
from headwater.metrics.metricbase import Counter, Distribution, Meter, MetricGroup

M = TypeVar("M", "PlainCounter", "PlainMeter", "PlainDistribution")
Snapshot: TypeAlias = dict[str, dict[str, Any]]  # {path: {"kind": ..., ...}}
Measured: TypeAlias = dict[str, dict[int, Snapshot]]  # {operator uid: {partition: ...}}


class PlainCounter(Counter):
    """Updated by one thread; int assignments are seen whole by others."""

    __slots__ = ("_count", "_taken")

    def __init__(self) -> None:
        self._count = 0
        self._taken = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "counter", "count": self._count}

    def take_delta(self) -> dict[str, Any]:
        count, self._taken = self._count - self._taken, self._count
        return {"kind": "counter", "count": count}


class PlainMeter(Meter):
    """The rate over the last `time_span_in_seconds`, counted in seconds; the clock can be given for tests."""

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._span = max(1, time_span_in_seconds)
        self._clock = clock
        self._count = 0
        self._taken = 0
        self._seconds: deque[list[int]] = deque()  # [[second, events in it], ...], oldest first

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += value
        else:
            self._seconds.append([second, value])
            self._forget(second)

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Events per second over the span that ends now."""
        first = int(self._clock()) - self._span
        return sum(events for second, events in list(self._seconds) if second > first) / self._span

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "meter", "count": self._count, "rate": self.get_rate()}

    def take_delta(self) -> dict[str, Any]:
        count, self._taken = self._count - self._taken, self._count
        return {"kind": "meter", "count": count, "rate": self.get_rate()}

    def _forget(self, now: int) -> None:
        while self._seconds[0][0] <= now - self._span:
            self._seconds.popleft()


class PlainDistribution(Distribution):
    """Least and greatest are None before the first value."""

    def __init__(self) -> None:
        self._taken: dict[str, Any] = {"kind": "distribution", "count": 0, "sum": 0, "min": None, "max": None}
        self._start()

    def _start(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._min: float | None = None
        self._max: float | None = None

    def update(self, value: float) -> None:
        self._count += 1
        self._sum += value
        if self._min is None or value < self._min:
            self._min = value
        if self._max is None or value > self._max:
            self._max = value

    def snapshot(self) -> dict[str, Any]:
        return _merge(self._taken, self._recent())

    def take_delta(self) -> dict[str, Any]:
        recent = self._recent()
        self._taken = _merge(self._taken, recent)
        self._start()
        return recent

    def _recent(self) -> dict[str, Any]:
        return {"kind": "distribution", "count": self._count, "sum": self._sum, "min": self._min, "max": self._max}


class PlainMetricGroup(MetricGroup):
    """A tree of groups; `snapshot` reads all metrics below."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._metrics: dict[str, PlainCounter | PlainMeter | PlainDistribution] = {}
        self._gauges: dict[str, Callable[[], int]] = {}
        self._groups: dict[str, PlainMetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> PlainMetricGroup:
        group = self._groups.setdefault(name, PlainMetricGroup(self._clock))
        return group if extra is None else group.add_group(extra)

    def counter(self, name: str) -> PlainCounter:
        return self._metric(name, PlainCounter, PlainCounter)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        if name in self._metrics:
            raise ConfigurationError(f"metric '{name}' is a {_kind(self._metrics[name])} already, not a gauge")
        self._gauges[name] = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> PlainMeter:
        return self._metric(name, PlainMeter, lambda: PlainMeter(time_span_in_seconds, self._clock))

    def distribution(self, name: str) -> PlainDistribution:
        return self._metric(name, PlainDistribution, PlainDistribution)

    def snapshot(self) -> Snapshot:
        """All values now. A gauge that raises is left out: reading metrics must not hurt the job."""
        values: Snapshot = {name: metric.snapshot() for name, metric in list(self._metrics.items())}
        values |= self._read_gauges()
        for name, group in list(self._groups.items()):
            values |= {f"{name}.{path}": value for path, value in group.snapshot().items()}
        return values

    def take_delta(self) -> Snapshot:
        """Return what was added since the last call, and gauges as they are now. Called when an epoch ends or fails."""
        values: Snapshot = {name: metric.take_delta() for name, metric in self._metrics.items()}
        values |= self._read_gauges()
        for name, group in self._groups.items():
            values |= {f"{name}.{path}": value for path, value in group.take_delta().items()}
        return values

    def _read_gauges(self) -> Snapshot:
        values: Snapshot = {}
        for name, read in list(self._gauges.items()):
            try:
                values[name] = {"kind": "gauge", "value": read()}
            except Exception:
                continue
        return values

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        if name in self._gauges:
            raise ConfigurationError(f"metric '{name}' is a gauge already, not a {kind.__name__}")
        if name not in self._metrics:
            self._metrics[name] = make()
        metric = self._metrics[name]
        if not isinstance(metric, kind):
            raise ConfigurationError(f"metric '{name}' is a {_kind(metric)} already, not a {kind.__name__}")
        return metric


def merge_snapshots(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Merge the snapshots of several partitions: counts, sums, rates and gauges add up; min and max are kept."""
    merged: Snapshot = {}
    for snapshot in snapshots:
        for path, value in snapshot.items():
            known = merged.get(path)
            merged[path] = dict(value) if known is None else _merge(known, value)
    return merged


def add_delta(total: Snapshot, delta: Snapshot) -> None:
    """Add an epoch's delta to `total`, of the same partition. The last rate and the last gauge replace earlier ones."""
    for path, value in delta.items():
        known = total.get(path)
        if known is None or known["kind"] != value["kind"] or value["kind"] == "gauge":
            total[path] = dict(value)
            continue
        total[path] = _merge(known, value)
        if "rate" in value:
            total[path]["rate"] = value["rate"]


def add_measured(total: Measured, more: Measured) -> None:
    """Add what one more split, task or epoch measured, {operator uid: {partition: delta}}."""
    for uid, partitions in more.items():
        known = total.setdefault(uid, {})
        for partition, delta in partitions.items():
            add_delta(known.setdefault(partition, {}), delta)


def _merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    if left["kind"] != right["kind"]:
        return left
    merged: dict[str, Any] = {"kind": left["kind"]}
    for field in left.keys() - {"kind"}:
        pair = [value for value in (left[field], right.get(field)) if value is not None]
        choose = {"min": min, "max": max}.get(field, sum)
        merged[field] = choose(pair) if pair else None
    return merged


def _kind(metric: PlainCounter | PlainMeter | PlainDistribution) -> str:
    return str(metric.snapshot()["kind"])
