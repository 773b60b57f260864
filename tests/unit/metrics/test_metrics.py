from __future__ import annotations

import pytest

from headwater.common.errors import ConfigurationError
from headwater.metrics import PlainMetricGroup, merge_snapshots


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_one_name_is_one_metric() -> None:
    group = PlainMetricGroup()
    group.counter("records").inc()
    group.counter("records").inc(5)
    group.counter("records").dec(2)
    assert group.counter("records").get_count() == 4
    with pytest.raises(ConfigurationError, match="'records' is a counter already"):
        group.meter("records")
    with pytest.raises(ConfigurationError, match="'records' is a counter already, not a gauge"):
        group.gauge("records", lambda: 1)


def test_a_meter_forgets_what_is_older_than_its_span() -> None:
    clock = Clock()
    meter = PlainMetricGroup(clock).meter("events", 10)
    meter.mark_event(20)
    assert meter.get_rate() == 2.0
    clock.now += 5
    meter.mark_event(10)
    assert meter.get_rate() == 3.0
    clock.now += 5
    assert meter.get_rate() == 1.0
    clock.now += 100
    assert meter.get_rate() == 0.0
    assert meter.get_count() == 30
    meter.mark_event()
    assert len(meter._seconds) == 1


def test_a_snapshot_has_all_values_below() -> None:
    group = PlainMetricGroup(Clock())
    group.counter("c").inc(2)
    group.gauge("g", lambda: 7)
    group.gauge("broken", lambda: 1 // 0)
    inner = group.add_group("user").add_group("city", "Bern")
    inner.distribution("d").update(4)
    group.add_group("user", "city")
    group.add_group("user").add_group("city").add_group("Bern").distribution("d").update(5)
    assert group.snapshot() == {
        "c": {"kind": "counter", "count": 2},
        "g": {"kind": "gauge", "value": 7},
        "user.city.Bern.d": {"kind": "distribution", "count": 2, "sum": 9, "min": 4, "max": 5},
    }


def test_snapshots_of_partitions_add_up() -> None:
    clock = Clock()
    one, two = PlainMetricGroup(clock), PlainMetricGroup(clock)
    one.counter("c").inc(2)
    two.counter("c").inc(3)
    two.counter("only").inc()
    one.distribution("d").update(4)
    two.distribution("d").update(-1)
    one.distribution("empty")
    two.distribution("empty")
    one.meter("m", 1).mark_event(2)
    two.meter("m", 1).mark_event(1)
    merged = merge_snapshots([one.snapshot(), two.snapshot()])
    assert merged == {
        "c": {"kind": "counter", "count": 5},
        "only": {"kind": "counter", "count": 1},
        "d": {"kind": "distribution", "count": 2, "sum": 3, "min": -1, "max": 4},
        "empty": {"kind": "distribution", "count": 0, "sum": 0, "min": None, "max": None},
        "m": {"kind": "meter", "count": 3, "rate": 3.0},
    }
    assert one.snapshot()["c"] == {"kind": "counter", "count": 2}, "merging changed its input"
