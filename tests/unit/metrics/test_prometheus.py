"""The Prometheus page: valid for Prometheus' own parser, whatever names people give."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from headwater.metrics.prometheus import exposition

FIGURES: dict[str, Any] = {
    "job": {"numRestarts": 2, "epochDuration": 3.5},
    "vertices": {
        "ab" * 16: {
            "name": 'Source: "odd" \\ name\n-> Map',
            "subtasks": [
                {
                    "numRecordsIn": 7,
                    "currentInputWatermark": -(2**63),
                    "Map.my.seen-so far": 3,
                    "Map.bad": float("nan"),
                },
                {"numRecordsIn": 8},
            ],
        }
    },
}


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_prometheus_reads_back_what_was_measured() -> None:
    found = parsed(exposition([("f" * 32, "job", FIGURES)]))
    assert found["flink_jobmanager_job_numRestarts"] == [({"job_id": "f" * 32, "job_name": "job"}, 2.0)]
    records = found["flink_taskmanager_job_task_numRecordsIn"]
    assert [(labels["subtask_index"], value) for labels, value in records] == [("0", 7.0), ("1", 8.0)]
    assert records[0][0]["task_name"] == 'Source: "odd" \\ name\n-> Map'
    ((labels, value),) = found["flink_taskmanager_job_task_operator_my_seen_so_far"]
    assert (labels["operator_name"], value) == ("Map", 3.0)


def test_metrics_of_several_jobs_are_one_family() -> None:
    text = exposition([("a" * 32, "one", FIGURES), ("b" * 32, "two", FIGURES)])
    assert text.count("# TYPE flink_jobmanager_job_numRestarts gauge") == 1
    names = {labels["job_name"] for labels, _ in parsed(text)["flink_jobmanager_job_numRestarts"]}
    assert names == {"one", "two"}


def test_a_server_without_jobs_has_an_empty_page() -> None:
    assert parsed(exposition([])) == {}
