"""What the engines are judged by: growth, processor time, latency."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import case, suite
from benchmarks.engines.fit import slope
from benchmarks.engines.growth import RECORDS, Measured, SmallEpochs
from benchmarks.harness.cpu import cpu_by_kind, mark_processes, marked_processes
from benchmarks.harness.report import judge
from benchmarks.harness.runner import Measurement
from benchmarks.latency.cases import MAIN, PYFLINK_SETTINGS
from benchmarks.latency.file_times import TimedFileSink, seen_in
from headwater.common.connector import WriterContext

BURN = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"


def measurement(contender: str, **facts: float) -> Measurement:
    return Measurement(contender, dict(facts), [], None)


def verdict_of(results: dict[str, list[Measurement]], text: str) -> tuple[str, str]:
    (found,) = (each for each in judge(suite.targets(cores=2), results) if each["target"] == text)
    return found["measured"], found["verdict"]


@pytest.mark.parametrize(("median_ms", "verdict"), [(12.0, "pass"), (12.1, "missed")])
def test_latency_is_judged_by_what_is_the_default(median_ms: float, verdict: str) -> None:
    results = {MAIN: [measurement(case.HEADWATER, median_ms=median_ms), measurement(case.RESIDENT, median_ms=1.0)]}
    assert verdict_of(results, "median latency, 2 keyed stages, 1,000 records/s, ms") == (f"{median_ms}", verdict)


def test_latency_is_compared_with_the_best_of_pyflink() -> None:
    _, tuned, more = PYFLINK_SETTINGS
    results = {
        MAIN: [
            measurement(case.HEADWATER, median_ms=9.0, p99_ms=40.0),
            measurement(case.PYFLINK, median_ms=2000.0, p99_ms=3000.0),
            measurement(tuned, median_ms=300.0, p99_ms=4000.0),
            measurement(more, median_ms=301.0, p99_ms=3500.0),
        ]
    }
    assert verdict_of(results, "median latency / PyFlink's best") == ("0.030", "pass")
    assert verdict_of(results, "p99 latency / PyFlink's best") == ("0.013", "pass")


def test_growth_is_judged_per_engine() -> None:
    results = {"growth": [measurement(case.RESIDENT, ms_per_slot=2.1), measurement(case.SHUFFLE, cpu_per_task_ms=10.4)]}
    assert verdict_of(results, "resident: longer epochs for each slot more, ms") == ("2.10", "missed")
    assert verdict_of(results, "shuffle: CPU per task at parallelism 16, ms") == ("10.4", "pass")


def test_growth_is_the_slope_of_a_line_through_all_points() -> None:
    assert slope([(2, 10.0), (4, 14.0), (8, 22.0)]) == pytest.approx(2.0)
    assert slope([(2, 10.0)]) == 0.0


def test_an_epoch_has_a_task_per_split_and_per_partition_of_a_keyed_stage() -> None:
    assert Measured(epoch_ms=100.0, cpu_by_kind_ms={"jvm": 400.0, "slots": 80.0}).cpu_per_task_ms(16) == 10.0


def test_a_small_epoch_ends_although_its_reader_stays_open() -> None:
    source = SmallEpochs()
    assert len(source.discover_splits(4, frozenset())) == 4
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    sizes = [len(reader.read_batch(1000) or []) for _ in range(4)]
    assert sizes == [RECORDS, 0, RECORDS, 0]
    assert reader.position() == 2 * RECORDS


def test_processor_time_of_a_process_is_counted_whatever_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_BENCH_JOB", "")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        mark = mark_processes()
        before = cpu_by_kind(mark, ())
        burning = subprocess.Popen(
            [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with burning:
            assert burning.stdout is not None
            burning.stdout.readline()
            assert burning.pid in marked_processes(mark)
            assert stranger.pid not in marked_processes(mark)
            assert cpu_by_kind(mark, ())["workers"] - before["workers"] >= 0.25
            assert cpu_by_kind(mark, {burning.pid})["slots"] >= 0.25
            burning.communicate(b"\n")
        stranger.communicate(b"\n")


def test_a_record_is_seen_when_its_file_is_renamed(tmp_path: Path) -> None:
    sink = TimedFileSink.in_directory(str(tmp_path))
    committer = sink.create_committer()
    for epoch, lines in enumerate([["0 100.0", "1 100.5"], [], ["2 101.0"]]):
        writer = sink.create_writer(WriterContext("job", "sink", 0, 1, str(epoch), epoch))
        writer.write_batch(lines, None)
        committables = writer.prepare_commit()
        writer.make_durable()
        committer.commit(committables)
    committer.close()
    seen, commits = seen_in(str(tmp_path))
    assert commits == 2
    assert [i for i, _ in seen] == [0, 1, 2]
    assert seen[0][1] - seen[1][1] == pytest.approx(0.5)
