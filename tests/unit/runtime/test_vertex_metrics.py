"""The figures of a job: per vertex, partition and edge; a replayed epoch counts once; rates, history, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.common.job_status import JobStatus
from headwater.metrics.prometheus import exposition
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.answers import metrics_of
from headwater.runtime.job.metrics.recent import KEPT, RecentHistory
from headwater.runtime.job.metrics.settling import Settling
from tests.unit.runtime.in_process_engine import InProcessEngine
from tests.unit.runtime.test_job_metrics import run, total


def figures(coordinator: Coordinator) -> dict[str, Any]:
    return metrics_of(coordinator, JobStatus.RUNNING)


def by_name(answer: dict[str, Any]) -> dict[str, Any]:
    return {vertex["name"].split(" -> ")[0]: vertex for vertex in answer["vertices"].values()}


def test_every_vertex_and_edge_has_its_counts(tmp_path: Path) -> None:
    answer = figures(run(tmp_path))
    source, keyed = answer["vertices"].values()
    assert source["aggregate"]["numRecordsIn"] == source["aggregate"]["numRecordsOut"] == 100
    assert keyed["aggregate"]["numRecordsIn"] == 100
    assert len(keyed["subtasks"]) == 2 and all(each["numRecordsIn"] > 0 for each in keyed["subtasks"])
    assert source["aggregate"]["numBytesOut"] == keyed["aggregate"]["numBytesIn"] > 0
    (edge,) = answer["edges"]
    assert (edge["ship_strategy"], edge["numRecords"]) == ("HASH", 100)
    assert sum(value for each in keyed["subtasks"] for name, value in each.items() if name.endswith(".seen")) == 100
    assert answer["job"]["numRecordsIn"] == answer["job"]["numRecordsOut"] == 100
    assert sum(answer["history"]["job"]["numRecordsOutPerSecond"]) > 0
    assert answer["job"]["numberOfCompletedCheckpoints"] > 5 and answer["job"]["outputLatency"] > 0
    json.dumps(answer)


def test_busy_idle_and_back_pressured_are_all_of_the_time(tmp_path: Path) -> None:
    for vertex in figures(run(tmp_path))["vertices"].values():
        for subtask in vertex["subtasks"]:
            assert sum(subtask[name + names.PER_SECOND] for name in names.TIMES) == pytest.approx(1000, rel=0.02)


def test_the_answer_is_a_valid_prometheus_page(tmp_path: Path) -> None:
    page = exposition([("f" * 32, "job", figures(run(tmp_path)))])
    found = {family.name: family.samples for family in text_string_to_metric_families(page)}
    assert sum(sample.value for sample in found["flink_taskmanager_job_task_operator_seen"]) == 200


def test_a_job_that_goes_back_counts_no_epoch_twice(tmp_path: Path) -> None:
    fired = []

    def lose_state(engine: InProcessEngine, header: EpochHeader) -> None:
        if header.attempt.epoch == 5 and not fired:
            fired.append(header.attempt)
            raise AttemptFailedError("a slot is gone", FailureReason.STATE_LOST)

    coordinator = run(tmp_path, lose_state)
    assert fired and coordinator.progress.rewinds == 1
    keyed = list(figures(coordinator)["vertices"].values())[1]
    assert keyed["aggregate"]["numRecordsIn"] == 100
    assert total(coordinator, "measured", "seen") == 100


def settling() -> Settling[dict[str, int]]:
    return Settling(dict, lambda total, more: total.update({k: total.get(k, 0) + n for k, n in more.items()}))


def test_a_sum_takes_back_what_no_checkpoint_has() -> None:
    found = settling()
    found.add({"a": 1})
    found.cut()
    found.add({"a": 10})
    assert found.total() == {"a": 11}
    found.settle()
    found.go_back()
    assert found.total() == {"a": 1}
    found.add({"a": 100})
    found.cut()
    found.go_back()  # before the checkpoint is complete
    assert found.total() == {"a": 1}
    found.reset()
    assert found.total() == {}


def test_the_output_of_a_failed_checkpoint_settles_with_the_next() -> None:
    found = settling()
    found.add({"a": 1})
    found.cut()
    found.add({"a": 2})
    found.cut()
    found.settle()
    found.go_back()
    assert found.total() == {"a": 3}


def test_history_is_bounded_and_rates_forget() -> None:
    from headwater.runtime.job.metrics.epoch_counts import Key

    history = RecentHistory(0.0)
    for second in range(1, 2 * KEPT):
        table = {Key("subtask", "v", 0): {"numRecordsIn": 5.0}, Key("subtask", "v", 1): {"numRecordsIn": 1.0}}
        history.add(float(second), second * 1000, table, {"epochs": 1.0}, {}, 0.1)
    now = float(2 * KEPT - 1)
    table, _, seconds = history.recent(now)
    assert len(history.slices()) == KEPT
    assert seconds == 10 and table[Key("subtask", "v", 0)]["numRecordsIn"] == 50
    assert {key for each in history.slices()[:-15] for key in each.table} == {Key("vertex", "v", -1)}
    assert history.recent(now + 11) == ({}, {}, 0)
