"""The collecting sink: exactly what was committed, once."""

from __future__ import annotations

import gc
import os
import pickle
import tempfile
import threading
from pathlib import Path

import pytest

from headwater.common.errors import SerializationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import CollectingSink, OneInputOperatorHarness, in_process


def test_only_what_was_committed_is_there(tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path))
    harness = OneInputOperatorHarness(sink)
    harness.process_elements(["a", "b"], [1, 2])
    committables = harness.snapshot().committables
    harness.process_element("not committed")
    assert sink.results() == []
    sink.create_committer().commit(list(committables))
    assert sink.results_with_timestamps() == [("a", 1), ("b", 2)]


def test_a_sink_that_nobody_uses_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sink = CollectingSink()
    assert list(tmp_path.iterdir()) == []
    assert sink.results() == []


def test_committed_again_from_another_process_changes_nothing(tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path))
    harness = OneInputOperatorHarness(sink)
    harness.process_elements([1, 1])
    stored = pickle.dumps(harness.snapshot().committables)
    for _ in range(2):
        pickle.loads(pickle.dumps(sink)).create_committer().commit(list(pickle.loads(stored)))
    assert sink.results() == [1, 1]


def test_results_come_by_epoch_and_partition(tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path))
    harnesses = [OneInputOperatorHarness(sink, partition=partition, parallelism=2) for partition in range(2)]
    committer = sink.create_committer()
    for epoch in range(12):
        for partition in (1, 0):
            harnesses[partition].process_element((epoch, partition))
            committer.commit(list(harnesses[partition].snapshot().committables))
    assert sink.results() == [(epoch, partition) for epoch in range(12) for partition in range(2)]


def test_two_sinks_of_a_job_on_one_directory_keep_what_both_got(tmp_path: Path) -> None:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        numbers = env.from_collection([1, 2, 3])
        for factor in (1, 10):
            numbers.map(lambda number, factor=factor: number * factor).sink_to(CollectingSink(str(tmp_path)))
        env.execute()
    assert sorted(CollectingSink(str(tmp_path)).results()) == [1, 2, 3, 10, 20, 30]


def test_a_failed_epoch_leaves_nothing(tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path))
    harness = OneInputOperatorHarness(sink)
    harness.process_element("lost")
    harness.fail_epoch()
    sink.create_committer().commit(list(harness.snapshot().committables))
    assert sink.results() == []


def test_a_record_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    harness = OneInputOperatorHarness(CollectingSink(str(tmp_path)), name="results")
    harness.process_element(threading.Lock())
    with pytest.raises(SerializationError, match=r"results.*lock"):
        harness.snapshot()


def test_a_directory_of_its_own_goes_with_the_sink() -> None:
    gc.collect()
    gc.freeze()  # what other tests left is no business of the child's: some of it cannot be finalized there
    sink = CollectingSink()
    directory = Path(sink.directory)
    copy = pickle.loads(pickle.dumps(sink))
    child = os.fork()
    if child == 0:  # leave as a process does that forgets it was forked: with all finalizers
        del sink
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    gc.unfreeze()
    del copy
    gc.collect()
    assert directory.is_dir(), "neither a child nor a copy removes it"
    del sink
    gc.collect()
    assert not directory.exists()


def test_a_given_directory_stays(tmp_path: Path) -> None:
    CollectingSink(str(tmp_path / "out"))
    gc.collect()
    assert (tmp_path / "out").is_dir()
