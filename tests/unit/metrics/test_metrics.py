from __future__ import annotations

import pytest

from headwater.common.errors import ConfigurationError
from headwater.metrics import Measured, PlainMetricGroup, add_delta, add_measured, merge_snapshots


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


def test_deltas_add_up_to_the_whole() -> None:
    group = PlainMetricGroup(Clock())
    nested = group.add_group("a", "b")
    level = 1
    group.gauge("level", lambda: level)
    total: dict[str, dict[str, object]] = {}
    for amounts in ([3, 9], [], [5]):
        for amount in amounts:
            group.counter("seen").inc()
            nested.distribution("sizes").update(amount)
            group.meter("rate", 10).mark_event()
        level += 1
        add_delta(total, group.take_delta())
    assert total["seen"] == {"kind": "counter", "count": 3}
    assert total["a.b.sizes"] == {"kind": "distribution", "count": 3, "sum": 17, "min": 3, "max": 9}
    assert total["rate"] == {"kind": "meter", "count": 3, "rate": 0.3}
    assert total["level"] == {"kind": "gauge", "value": 4}
    assert total == group.snapshot()


def test_a_delta_that_nobody_wants_is_gone() -> None:
    group = PlainMetricGroup()
    group.counter("seen").inc(7)
    group.distribution("sizes").update(100)
    group.take_delta()  # the epoch failed
    group.counter("seen").inc(2)
    group.distribution("sizes").update(1)
    delta = group.take_delta()
    assert delta["seen"]["count"] == 2
    assert delta["sizes"] == {"kind": "distribution", "count": 1, "sum": 1, "min": 1, "max": 1}
    assert group.counter("seen").get_count() == 9


def test_what_partitions_measured_is_kept_apart() -> None:
    total: Measured = {}
    for partition, count in ((0, 1), (1, 5), (0, 2)):
        add_measured(total, {"enrich": {partition: {"seen": {"kind": "counter", "count": count}}}})
    assert {partition: seen["seen"]["count"] for partition, seen in total["enrich"].items()} == {0: 3, 1: 5}
