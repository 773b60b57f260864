"""Structured Streaming repeats a batch that it has not noted as done; the manifest tells whether it counts already."""

from __future__ import annotations

from pathlib import Path

from tests.recovery.conftest import MakeRun
from tests.recovery.runs import KILLED, Fault, assert_same
from tests.recovery.streaming_driver import expected, write_input

FILES, WORDS_PER_FILE = 8, 500

BEFORE_THE_MANIFEST = Fault("processed", 3, "driver")
"""Spark repeats batch 3, and it must be processed."""
AFTER_THE_MANIFEST = Fault("manifest-written", 5, "driver")
"""Between our manifest and Spark's own commit: Spark repeats batch 5, and it must not be processed again."""


def test_driver_killed_between_manifest_and_sparks_commit(make_run: MakeRun, tmp_path: Path) -> None:
    write_input(tmp_path / "input", FILES, WORDS_PER_FILE)
    run = make_run(module="tests.recovery.streaming_driver", conf={"input": str(tmp_path / "input")})
    slot_and_worker = [Fault("mid-chunk", 1, "slot"), Fault("chunk-received", 2, "worker")]
    run.plan([*slot_and_worker, BEFORE_THE_MANIFEST, AFTER_THE_MANIFEST])

    assert run.start().wait(240) == KILLED, run.log()
    assert run.epoch() == BEFORE_THE_MANIFEST.epoch - 1
    assert run.start().wait(240) == KILLED, run.log()
    assert run.epoch() == AFTER_THE_MANIFEST.epoch
    latest = run.latest()
    assert latest is not None and latest.spark["batch_id"] == noted_by_spark(run.checkpoints) + 1

    last = run.start()  # the stream has no end: it is stopped when Spark has noted the last file
    run.wait_for_epoch(FILES - 1)
    run.wait_until(lambda: noted_by_spark(run.checkpoints) == FILES - 1, "Spark's commit of the last batch")
    last.terminate()
    last.wait(60)
    run.wait_until(lambda: not run.processes(), "all processes to end", seconds=60)
    assert len(run.fired()) == 4
    assert_same(run.lines(), expected(FILES * WORDS_PER_FILE))


def noted_by_spark(checkpoints: Path) -> int:
    """The last micro-batch that Spark has noted as done."""
    return max((int(path.name) for path in (checkpoints / "spark" / "commits").glob("[0-9]*")), default=-1)
