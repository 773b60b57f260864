"""The report says what was measured, what was promised, and what could not be measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import case, suite
from benchmarks.harness.report import judge, write
from benchmarks.harness.runner import Measurement
from benchmarks.latency.distribution import Histogram


def measurement(contender: str, error: str | None = None, **facts: float) -> Measurement:
    return Measurement(contender, dict(facts), [float(value) for value in facts.values()][:1], error)


@pytest.mark.parametrize(("rate", "verdict"), [(300_000.0, "pass"), (299_999.0, "missed")])
def test_a_target_is_computed_from_the_same_run(rate: float, verdict: str) -> None:
    results = {
        "keyed_count_1k": [
            measurement(case.HEADWATER, rate=rate),
            measurement(case.PYFLINK, rate=10_000.0),
            measurement(case.PYFLINK_TUNED, rate=5_000.0),
            measurement(suite.BARE_LOOP, rate=700_000.0),
        ]
    }
    verdicts = {found["target"]: found for found in judge(suite.targets(cores=2), results)}
    assert verdicts["headwater / PyFlink at its best, 1 k keys"]["verdict"] == verdict
    assert verdicts["headwater / (2 cores x bare loop), 1 k keys"]["measured"] == "21%"


def test_a_missing_peer_makes_the_target_not_measured() -> None:
    results = {"grep": [measurement(case.HEADWATER, rate=1.0), measurement(suite.PYFLINK, "stopped after 600 s")]}
    verdicts = judge(suite.targets(cores=2), results)
    assert {found["verdict"] for found in verdicts} == {"not measured"}


def test_what_ran_in_turn_is_compared_in_pairs() -> None:
    """The machine was half as fast in the second turn, for both."""
    runs = {"on": [100.0, 50.0, 99.0], "off": [101.0, 50.0, 100.0]}

    def look(_: str, contender: str, fact: str) -> float:
        return dict(enumerate(runs[contender]))[int(fact.removeprefix("run "))]

    assert case.paired(look, "grep", "off", "on") == pytest.approx(1.01, abs=0.001)


def test_a_limit_from_above_is_met_from_below() -> None:
    results = {"memory": [measurement(case.HEADWATER, peak_mb=599.0)]}
    assert [found["verdict"] for found in judge(suite.targets(cores=2), results)] == ["pass"]


def test_a_quick_run_judges_nothing() -> None:
    results = {"memory": [measurement(case.HEADWATER, peak_mb=599.0)]}
    assert [found["verdict"] for found in judge(suite.targets(cores=2), results, quick=True)] == ["not judged"]


def test_both_files_are_written_and_agree(tmp_path: Path) -> None:
    results = {
        "keyed_count_1m": [
            measurement(case.HEADWATER, rate=400_000.0),
            measurement(suite.SPARK_TRANSFORM, "stopped after 150 s", rate=900.0),
            measurement(suite.SPARK_NATIVE, rate=50_000.0),
            measurement(case.PYFLINK, "exit code 1"),
        ]
    }
    write(tmp_path, {"cores": "2"}, suite.cases(), suite.targets(cores=2), results)
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "| Spark native aggregate, RocksDB | 50,000 | 8.00 |" in text
    assert "| PyFlink, defaults | no result |" in text
    assert (
        "- Spark transformWithState, RocksDB: stopped after 150 s; the number is of what it had done by then." in text
    )
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert stored["targets"][0]["value"] == 8.0


def test_the_report_shows_a_drawing_of_the_latencies(tmp_path: Path) -> None:
    facts = {"median_ms": 8.0, "p99_ms": 30.0, "histogram": Histogram.of([8.0] * 50 + [30.0]).encode()}
    results = {"latency_1k": [Measurement(case.HEADWATER, facts, [8.0], None)]}
    write(tmp_path, {"cores": "2"}, suite.cases(), suite.targets(cores=2), results)
    assert "](latency_1k.svg)" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert case.HEADWATER in (tmp_path / "latency_1k.svg").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.glob("*.svg")] == ["latency_1k.svg"]


def test_every_target_belongs_to_a_case() -> None:
    assert {target.case for target in suite.targets(cores=2)} <= {case.name for case in suite.cases()}
