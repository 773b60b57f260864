"""One program after another: what it says is taken, what it leaves is removed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.environments import BENCH_DIR
from benchmarks.harness.memory import tree_pss_bytes
from benchmarks.harness.process import Program, run


def test_a_program_reports_its_facts() -> None:
    outcome = run(Program("benchmarks.keyed_count.bare_loop", {"records": 20_000, "keys": 10}))
    assert outcome.error is None
    assert outcome.facts["records"] == 20_000
    assert outcome.facts["outputs"] == 15  # ten keys with close to 2,000 updates each
    assert outcome.facts["wall_s"] > 0


def test_a_program_that_fails_leaves_its_last_lines_in_the_error() -> None:
    outcome = run(Program("benchmarks.keyed_count.bare_loop", {"records": "many"}))
    assert not outcome.measured
    assert outcome.error is not None
    assert "exit code 2" in outcome.error
    assert "invalid int value: 'many'" in outcome.error


def test_a_program_that_takes_too_long_is_stopped_and_its_folder_removed() -> None:
    before = set(BENCH_DIR.glob("run-*"))
    outcome = run(Program("benchmarks.keyed_count.bare_loop", {"records": 10**12}, timeout_s=0.5))
    assert outcome.timed_out
    assert not outcome.measured
    assert set(BENCH_DIR.glob("run-*")) <= before


def test_memory_of_a_process_that_is_gone_is_nothing() -> None:
    largest = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    assert tree_pss_bytes({largest + 1}) == 0
