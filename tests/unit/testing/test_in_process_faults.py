"""Faults in this process: the job survives each of them, each is known to have fired, and a broken engine is found."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import ClassVar

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.store import ManifestStore
from headwater.common.connector import Committer
from headwater.common.errors import ConfigurationError, JobFailedError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.runtime.slot.slot import Slot
from headwater.testing import (
    CRASH,
    CRASH_JOB,
    EOF,
    PAUSE,
    STEPS,
    CollectingSink,
    InProcess,
    JobCrashed,
    ScriptSource,
    assert_same_records,
    in_process,
)
from tests.unit.testing.programs import WORDS, count_words, counted


@pytest.fixture
def sink(tmp_path: Path) -> CollectingSink:
    return CollectingSink(str(tmp_path / "out"))


def program(sink: CollectingSink) -> StreamExecutionEnvironment:
    """Reads as much as an epoch may, in each epoch."""
    return count_words(sink, DataGeneratorSource(lambda i: WORDS[i % 3], count=24))


@pytest.mark.parametrize("at", STEPS)
def test_the_job_survives_a_crash_at_every_step(sink: CollectingSink, at: str) -> None:
    with in_process(epoch_records=5) as here:
        crash = here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed, match=f"'{at}' of epoch 2"):
            program(sink).execute()
        assert crash.fired == 1
        committed = len(sink.results())
        assert 0 < committed < 24
        program(sink).execute()
    assert_same_records(sink.results(), counted())


class Connected(CollectingSink):
    """Its committer has a connection that somebody else refers to, too, as a client's thread does."""

    opened: ClassVar[list[socket.socket]] = []

    def create_committer(self) -> Committer:
        committer = super().create_committer()
        connection, _ = socket.socketpair()
        self.opened.append(connection)
        committer.close = connection.close  # type: ignore[method-assign]
        return committer


def test_a_job_that_was_killed_has_no_connection(tmp_path: Path) -> None:
    with in_process(epoch_records=5) as here, pytest.raises(JobCrashed):
        here.crash_job(epoch=2)
        program(Connected(str(tmp_path))).execute()
    assert Connected.opened and all(connection.fileno() == -1 for connection in Connected.opened)


def test_a_crash_comes_before_or_after_the_commit(sink: CollectingSink) -> None:
    seen = {}
    for at in ("begin", "acked", "manifest-written", "sink-committed"):
        with in_process(epoch_records=5) as here, pytest.raises(JobCrashed):
            here.crash_job(epoch=2, at=at)
            program(sink).execute(at)
        seen[at] = len(sink.results())
    before, acked, written, committed = seen.values()
    assert acked - before == written - acked == before, "nothing of epoch 2 may be visible yet"
    assert committed - written > before


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("checkpoint_epochs", [1, 3])
def test_a_slot_is_lost(sink: CollectingSink, at: str, checkpoint_epochs: int) -> None:
    epoch = 5 if checkpoint_epochs == 3 and at in STEPS[-2:] else 4
    with in_process(epoch_records=3, checkpoint_epochs=checkpoint_epochs) as here:
        kill = here.kill_slot("count", partition=1, epoch=epoch, at=at)
        program(sink).execute()
        assert kill.fired == 1
        progress = here.jobs[0].client.progress()
    assert_same_records(sink.results(), counted())
    went_back = checkpoint_epochs == 3 and at not in STEPS[-2:]
    assert (progress["rewinds"] > 0) == went_back, "with checkpoints in between, the whole job goes back"


def test_attempts_that_fail_take_no_time_and_count_once(sink: CollectingSink) -> None:
    with in_process(epoch_records=5) as here:
        before_ms = here.clock.now_ms
        failures = here.fail_attempt(epoch=2, times=3)
        program(sink).execute()
        assert failures.fired == 3
        assert here.jobs[0].client.progress()["restarts"] == 3
        assert here.clock.now_ms - before_ms >= 3_000, "the restart policy waits a second each time, by the clock"
    assert_same_records(sink.results(), counted())


def test_a_job_fails_if_its_policy_allows_no_more(sink: CollectingSink) -> None:
    with in_process(epoch_records=5) as here, pytest.raises(JobFailedError, match="restart policy allows no more"):
        here.fail_attempt(epoch=1, times=11)
        program(sink).execute()


def test_a_commit_fails(sink: CollectingSink) -> None:
    with in_process(epoch_records=5) as here:
        failure = here.fail_commit("out", times=2)
        program(sink).execute()
        assert failure.fired == 2
    assert_same_records(sink.results(), counted())


def test_a_script_kills_its_reader_or_the_whole_job(sink: CollectingSink) -> None:
    script = ScriptSource([*WORDS, PAUSE, *WORDS, CRASH, *WORDS, PAUSE, *WORDS, CRASH_JOB, *WORDS, EOF])
    with in_process() as here:
        with pytest.raises(JobCrashed, match="the script says so"):
            count_words(sink, script).execute()
        assert script.crash_count() == 2
        assert here.jobs[0].client.progress()["restarts"] == 1
        count_words(sink, script).execute()
    assert_same_records(sink.results(), counted(WORDS * 5))


def test_a_fault_that_did_not_fire_fails_the_test(sink: CollectingSink) -> None:
    message = r"did not happen: \[<the job's crash at 'begin' of epoch 99, fired 0 of 1 times>\]"
    with pytest.raises(AssertionError, match=message), in_process() as here:
        here.crash_job(epoch=99)
        program(sink).execute()


def test_what_else_fails_is_not_hidden_by_a_fault_that_did_not_fire() -> None:
    with pytest.raises(ZeroDivisionError), in_process() as here:
        here.crash_job(epoch=99)
        raise ZeroDivisionError


def test_a_slot_that_is_not_there(sink: CollectingSink) -> None:
    with pytest.raises(ConfigurationError, match="no operator 'sum' with a slot; it has 'count'"), in_process() as here:
        here.kill_slot("sum", epoch=0)
        program(sink).execute()
    with pytest.raises(ConfigurationError, match="no partition 7; expected 0 to 1"), in_process() as here:
        here.kill_slot("count", 7, epoch=0)
        program(sink).execute()


def survives_all(sink: CollectingSink) -> None:
    """A test as a user writes it."""

    def faults(here: InProcess) -> None:
        here.fail_attempt(epoch=1)
        here.kill_slot("count", epoch=2)
        here.crash_job(epoch=3, at="manifest-written")

    with in_process(epoch_records=4) as here:
        faults(here)
        with pytest.raises(JobCrashed):
            program(sink).execute()
        program(sink).execute()
    assert_same_records(sink.results(), counted())


def test_a_users_test_is_green(sink: CollectingSink) -> None:
    survives_all(sink)


def test_a_slot_that_applies_an_epoch_twice_is_found(sink: CollectingSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed attempt is not undone."""
    undo = Slot._undo

    def keep(self: Slot) -> None:
        for backend in self.runner.backends():
            backend.commit_epoch(cut=False)
            backend.begin_epoch()
        undo(self)

    monkeypatch.setattr(Slot, "_undo", keep)
    with pytest.raises(AssertionError, match=r"lost: .*too many: "):
        survives_all(sink)


def test_a_driver_that_commits_without_a_manifest_is_found(
    sink: CollectingSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one reads the same input again."""
    write = ManifestStore.write

    def forget(self: ManifestStore, manifest: Manifest) -> None:
        if manifest.epoch != 3:
            write(self, manifest)

    monkeypatch.setattr(ManifestStore, "write", forget)
    with in_process(epoch_records=4) as here:
        here.crash_job(epoch=3, at="sink-committed")
        with pytest.raises(JobCrashed):
            program(sink).execute()
        program(sink).execute()
    with pytest.raises(AssertionError, match="too many: "):
        assert_same_records(sink.results(), counted())


def test_a_script_may_end_the_job_only_here(sink: CollectingSink) -> None:
    reader = ScriptSource([CRASH_JOB]).open_reader(ScriptSource([]).discover_splits(1, frozenset())[0], None)
    with pytest.raises(ConfigurationError, match="only within in_process"):
        reader.read_batch(1)


def test_records_are_compared_as_multisets() -> None:
    assert_same_records([2, 1, 1], iter([1, 2, 1]))
    assert_same_records([{"a": 1}], [{"a": 1}])
    with pytest.raises(AssertionError, match=r"found 3 records, expected 2; lost: 3; too many: 1 \(x 2\)"):
        assert_same_records([1, 1, 1], [1, 3])


def test_two_programs_side_by_side_are_struck_apart(sink: CollectingSink, tmp_path: Path) -> None:
    other = CollectingSink(str(tmp_path / "other"))
    with in_process(epoch_records=3) as here:
        here.crash_job(epoch=2)
        jobs = [program(sink).execute_async("first"), program(other).execute_async("second")]
        crashed = []
        for job in jobs:
            with contextlib.suppress(JobCrashed):
                job.get_job_execution_result().result()
            crashed.append(job.get_job_execution_result().exception())
    assert [type(error) for error in crashed if error is not None] == [JobCrashed]
    assert {len(sink.results()) == 24, len(other.results()) == 24} == {True, False}


def test_the_environment_is_usable_after_a_crash(sink: CollectingSink) -> None:
    with in_process() as here:
        here.crash_job(epoch=0)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).sink_to(sink)
        with pytest.raises(JobCrashed):
            env.execute("one")
        env.from_collection([1]).sink_to(sink)
        env.execute("one")
    assert sink.results() == [1]
