"""Findings: each named from facts that show it, and not from facts that do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from headwater.common.ids import Place
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.runtime.epoch.figures import HotKey, KeySampling
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.job.checkpoint_stats import CheckpointStats, PartStats
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.epoch_counts import Key, Table
from headwater.runtime.job.metrics.findings import findings
from headwater.runtime.job.metrics.job_facts import JobFacts, SlotCondition
from headwater.runtime.job.metrics.job_metrics import JobMetrics, PartitionState, Snapshot
from headwater.runtime.job.metrics.recent import Slice
from tests.unit.runtime.in_process_engine import plan_of


def job(env: StreamExecutionEnvironment) -> DataStream:
    counted = env.from_collection([1]).key_by(lambda value: value).reduce(max)
    return counted.uid("count").name("Count")


def figures(**changes: Any) -> Snapshot:
    return replace(JobMetrics(plan_of(job, 4)).snapshot(0), recent_seconds=10.0, **changes)


GRAPH = figures().graph
COUNT = GRAPH.vertex_of["count"]


def recent(records: list[int], busy_ms: list[float] | None = None) -> Table:
    busy_ms = busy_ms or [1_000.0] * len(records)
    return {
        Key("subtask", COUNT, subtask): {names.RECORDS_IN: float(count), names.BUSY: busy}
        for subtask, (count, busy) in enumerate(zip(records, busy_ms, strict=True))
    }


def causes(facts: JobFacts | Snapshot) -> list[tuple[str, int | None]]:
    facts = facts if isinstance(facts, JobFacts) else JobFacts(facts)
    return [(cause.cause, cause.subtask) for cause in findings(facts)]


def test_an_even_job_has_no_findings() -> None:
    assert causes(figures(recent=recent([5_000, 5_100, 4_900, 5_000]))) == []


@pytest.mark.parametrize(
    ("records", "found"),
    [([9_000, 500, 500, 500], [("skew", 0)]), ([9, 0, 0, 0], []), ([5_000, 9_000, 6_000, 5_000], [])],
)
def test_skew(records: list[int], found: list[Any]) -> None:
    assert causes(figures(recent=recent(records))) == found


def sampled(hits: float) -> dict[tuple[str, int], KeySampling]:
    return {("count", 2): KeySampling(500.0, (HotKey("'de'", 17, hits), HotKey("'at'", 3, 4.0)))}


def test_a_hot_key_is_blamed_for_the_skew_it_makes() -> None:
    hot = figures(recent=recent([1_000, 1_000, 8_000, 1_000]), key_samples=sampled(400.0))
    assert causes(hot) == [("hot-key", 2)]
    text = findings(JobFacts(hot))[0].text
    assert "'de'" in text and "58%" in text and "key group 17" in text


def test_many_warm_keys_are_skew_and_no_hot_key() -> None:
    warm = figures(recent=recent([1_000, 1_000, 8_000, 1_000]), key_samples=sampled(20.0))
    assert causes(warm) == [("skew", 2)]


def on_hosts(*hosts: str) -> dict[Place, PartitionState]:
    return {
        Place(1, index): PartitionState(address=SlotAddress(1, index, host, 0, "", 1, "x"))
        for index, host in enumerate(hosts)
    }


def test_a_slow_host() -> None:
    even = [5_000] * 4
    slow = recent(even, [900.0, 1_000.0, 3_000.0, 2_900.0])
    assert causes(figures(recent=slow, partitions=on_hosts("a", "a", "b", "b"))) == [("slow-host", None)]
    assert "host b" in findings(JobFacts(figures(recent=slow, partitions=on_hosts("a", "a", "b", "b"))))[0].text
    assert causes(figures(recent=slow, partitions=on_hosts("a", "b", "a", "b"))) == []
    assert causes(figures(recent=slow, partitions=on_hosts("a", "a", "a", "a"))) == []


def process(**counts: float) -> Mapping[str, float]:
    known = {"busy": names.BUSY, "cpu": names.CPU, "gc": names.GC, "faults": names.MAJOR_FAULTS}
    return {known[name]: value for name, value in counts.items()}


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (process(busy=9_000, cpu=1_000), "neither computed nor waited"),
        (process(busy=9_000, cpu=8_900, gc=2_000), "garbage collection"),
        (process(busy=9_000, cpu=2_000, faults=5_000), "read from disk"),
        (process(busy=9_000, cpu=8_900, gc=100, faults=10), None),
    ],
)
def test_a_stalled_slot(counts: Mapping[str, float], says: str | None) -> None:
    found = findings(JobFacts(figures(recent={Key("process", "1", 3): dict(counts)})))
    assert [(each.cause, each.subtask) for each in found] == ([("stalled-slot", 3)] if says else [])
    assert says is None or says in found[0].text


def test_a_stopped_and_a_swapped_process() -> None:
    slots = (
        SlotCondition(Place(1, 0), "a", 11, stopped=True),
        SlotCondition(Place(1, 1), "a", 12, swapped_bytes=1 << 30),
        SlotCondition(Place(1, 2), "a", 13),
    )
    found = findings(JobFacts(figures(), slots=slots))
    assert [each.subtask for each in found] == [0, 1]
    assert "process 11 is stopped" in found[0].text and "1024 MiB" in found[1].text


def checkpoint(duration_ms: float, commit_ms: float) -> CheckpointStats:
    part = PartStats(1, 0, 10, 10, 1.0, 5.0, 1.0)
    return CheckpointStats(1, "completed", None, 0, duration_ms, 10, (part,), 2.0, commit_ms)


def test_checkpoints_that_take_longer_than_their_interval() -> None:
    slow = (checkpoint(5_000, 4_900),) * 3
    (found,) = findings(JobFacts(figures(), checkpoints=slow, checkpoint_interval_ms=1_000))
    assert found.cause == "checkpoint-too-slow" and "the commit of the sinks" in found.text
    assert causes(JobFacts(figures(), checkpoints=slow, checkpoint_interval_ms=10_000)) == []
    assert causes(JobFacts(figures(), checkpoints=slow)) == []  # at every epoch: there is no interval to keep


def slices(full: float, lag_ms_per_second: float) -> list[Slice]:
    sums = {"epochs": 10.0, "fullEpochs": 10 * full}
    return [
        Slice(float(n), n + 1.0, n * 1000, {}, dict(sums), {"watermarkLag": n * lag_ms_per_second}) for n in range(30)
    ]


def test_a_growing_backlog_names_the_busiest_vertex() -> None:
    busy = recent([5_000] * 4, [9_900.0] * 4)
    (found,) = findings(JobFacts(figures(slices=slices(1.0, 500.0), recent=busy)))
    assert (found.cause, found.vertex) == ("backlog-grows", COUNT)
    assert causes(figures(slices=slices(1.0, 0.0), recent=busy)) == []  # full, but it keeps up
    assert causes(figures(slices=slices(0.2, 500.0), recent=busy)) == []  # behind, but not for lack of speed
    assert causes(figures(slices=slices(1.0, 500.0)[:5], recent=busy)) == []  # too short a time
