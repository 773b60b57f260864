"""What every exactly-once sink must keep: run it on a sink of your own.

    def my_case() -> SinkCase:                      # a new, empty place for each check
        table = new_table()
        return SinkCase(MySink(table), visible=lambda: read(table))

    @pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: check.__name__)
    def test_my_sink(check): check(my_case())

Nothing is visible before it is committed; what an aborted or dead attempt wrote never is; a commit may be repeated, and
may come from another process than the one that wrote.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.connector import (
    Committer,
    CommitterContext,
    OutputFiles,
    ReusableSinkWriter,
    Sink,
    SinkWriter,
    WriterContext,
)
from headwater.testing.scratch import scratch_directory

Record = dict[str, Any]


def some_records(start: int, stop: int) -> list[Record]:
    """Records with an int and a text, some of them with quotes, letters and line feeds that formats get wrong."""
    return [{"i": i, "text": f'"{i}", ä\n'} if i % 5 == 0 else {"i": i, "text": f"t{i}"} for i in range(start, stop)]


@dataclass
class SinkCase:
    """A sink and how to look at its output."""

    sink: Sink
    visible: Callable[[], list[Any]]
    """What readers see now."""
    shown: Callable[[Any], Any] = lambda record: record
    """How they see a record."""
    records: Callable[[int, int], list[Any]] = some_records
    """Makes the records number `start` to `stop`, all different."""
    outlives_its_process: bool = True
    """False for a terminal or a queue: what another process committed is not seen here."""
    whole_epochs: bool = False
    """The committer relies on it that one call has all output of an epoch (`concurrency` 1)."""
    files: OutputFiles | None = field(default=None)

    def __post_init__(self) -> None:
        if self.files is None:
            directory = scratch_directory(self, "headwater-contract-")
            self.files = StoredOutputFiles(CheckpointLayout(directory), "sink")


def writer(case: SinkCase, epoch: int, partition: int = 0, attempt: str = "a0") -> SinkWriter:
    """A writer as a task makes it: from a sink that was pickled."""
    sink: Sink = cloudpickle.loads(cloudpickle.dumps(case.sink))
    return sink.create_writer(context(case, epoch, partition, attempt))


def context(case: SinkCase, epoch: int, partition: int = 0, attempt: str = "a0") -> WriterContext:
    return WriterContext("job1", "sink", partition, 2, f"{epoch}-{attempt}", epoch, "sink", case.files)


def committer_of(case: SinkCase) -> Committer:
    """The committer of a new driver. Its connections go with the case."""
    committer = case.sink.create_committer()
    weakref.finalize(case, committer.close)
    committer.open(CommitterContext("job1", "sink", "sink", case.files))
    return committer


def next_writer(case: SinkCase, before: SinkWriter, epoch: int, attempt: str = "a0") -> SinkWriter:
    """What writes another attempt after `before` has prepared one: itself, if it can."""
    if isinstance(before, ReusableSinkWriter):
        before.begin_epoch(context(case, epoch, attempt=attempt))
        return before
    before.close()
    return writer(case, epoch, attempt=attempt)


def write(case: SinkCase, values: list[Any], epoch: int, partition: int = 0, attempt: str = "a0") -> list[Any]:
    """Write an epoch and return its committables as a manifest keeps them."""
    made = writer(case, epoch, partition, attempt)
    committables = write_with(made, values)
    made.close()
    return committables


def write_with(made: SinkWriter, values: list[Any]) -> list[Any]:
    for start in range(0, len(values), 4):
        batch = values[start : start + 4]
        made.write_batch(batch, [start + number for number in range(len(batch))])
    committables = made.prepare_commit()
    made.make_durable()
    return [cloudpickle.loads(cloudpickle.dumps(item)) for item in committables]


def assert_visible(case: SinkCase, expected: list[Any]) -> None:
    found = Counter(map(repr, case.visible()))
    wanted = Counter(repr(case.shown(record)) for record in expected)
    assert found == wanted, f"missing: {wanted - found}; too many: {found - wanted}"


def clean_up(committer: Committer) -> None:
    committer.delete_leftovers(committer.find_leftovers("job1"))


def nothing_is_visible_before_the_commit_and_everything_after(case: SinkCase) -> None:
    committables = write(case, case.records(0, 20), 1, 0) + write(case, case.records(20, 30), 1, 1)
    assert case.visible() == []
    committer_of(case).commit(committables)
    assert_visible(case, case.records(0, 30))


def committing_twice_is_committing_once(case: SinkCase) -> None:
    committer = committer_of(case)
    committables = write(case, case.records(0, 9), 1) + write(case, case.records(9, 18), 1, partition=1)
    if not case.whole_epochs:
        committer.commit(committables[:1])  # the driver was interrupted here
    committer.commit(committables)
    committer.commit(committables)
    assert_visible(case, case.records(0, 18))


def a_new_driver_repeats_the_last_commit(case: SinkCase) -> None:
    if not case.outlives_its_process:
        return
    committables = write(case, case.records(0, 9), 1)
    committer_of(case).commit(committables)
    committer_of(case).commit(committables)
    assert_visible(case, case.records(0, 9))


def an_aborted_attempt_leaves_nothing_and_its_replay_counts_once(case: SinkCase) -> None:
    failed = writer(case, 1, attempt="a0")
    failed.write_batch(case.records(0, 7), None)
    failed.abort()
    failed.close()
    committer_of(case).commit(write(case, case.records(0, 20), 1, attempt="a1"))
    assert_visible(case, case.records(0, 20))


def a_prepared_attempt_whose_manifest_never_came_stays_invisible(case: SinkCase) -> None:
    write(case, case.records(0, 20), 1, attempt="a0")  # and then another partition failed
    committer = committer_of(case)
    committer.commit(write(case, case.records(0, 20), 1, attempt="a1"))
    assert_visible(case, case.records(0, 20))
    clean_up(committer)
    assert_visible(case, case.records(0, 20))


def epochs_add_up(case: SinkCase) -> None:
    committer = committer_of(case)
    for epoch in range(5):
        committer.commit(write(case, case.records(epoch * 10, epoch * 10 + 10), epoch))
    assert_visible(case, case.records(0, 50))


def epochs_add_up_with_a_writer_that_stays_open(case: SinkCase) -> None:
    committer, made = committer_of(case), writer(case, 0)
    for epoch in range(5):
        committer.commit(write_with(made, case.records(epoch * 10, epoch * 10 + 10)))
        made = next_writer(case, made, epoch + 1)
    made.close()
    assert_visible(case, case.records(0, 50))


def a_prepared_attempt_that_failed_is_written_again_by_the_same_writer(case: SinkCase) -> None:
    committer, made = committer_of(case), writer(case, 1, attempt="a0")
    write_with(made, case.records(0, 20))  # and then another partition failed
    made = next_writer(case, made, 1, attempt="a1")
    committer.commit(write_with(made, case.records(0, 20)))
    assert_visible(case, case.records(0, 20))
    clean_up(committer)
    made.close()
    assert_visible(case, case.records(0, 20))


def what_was_prepared_outlives_an_abort(case: SinkCase) -> None:
    """What a writer has prepared stays, if it aborts a later epoch."""
    _outlives(case, aborts=True)


def what_was_prepared_outlives_the_end_of_its_writer(case: SinkCase) -> None:
    """What a writer has prepared stays, if it is closed in a later epoch."""
    _outlives(case, aborts=False)


def _outlives(case: SinkCase, aborts: bool) -> None:
    made = writer(case, 1)
    prepared = write_with(made, case.records(0, 20))
    made = next_writer(case, made, 2)
    made.write_batch(case.records(20, 30), None)
    if aborts:
        made.abort()
    made.close()
    committer_of(case).commit(prepared)
    assert_visible(case, case.records(0, 20))


def two_writers_of_one_partition_do_not_hide_each_other(case: SinkCase) -> None:
    committables = write(case, case.records(0, 5), 1) + write(case, case.records(5, 10), 1)
    committer_of(case).commit(committables)
    assert_visible(case, case.records(0, 10))


def an_epoch_without_records_has_nothing_to_commit(case: SinkCase) -> None:
    assert write(case, [], 1) == []
    committer_of(case).commit([])
    assert case.visible() == []


SINK_CHECKS: tuple[Callable[[SinkCase], None], ...] = (
    nothing_is_visible_before_the_commit_and_everything_after,
    committing_twice_is_committing_once,
    a_new_driver_repeats_the_last_commit,
    an_aborted_attempt_leaves_nothing_and_its_replay_counts_once,
    a_prepared_attempt_whose_manifest_never_came_stays_invisible,
    epochs_add_up,
    epochs_add_up_with_a_writer_that_stays_open,
    a_prepared_attempt_that_failed_is_written_again_by_the_same_writer,
    what_was_prepared_outlives_an_abort,
    what_was_prepared_outlives_the_end_of_its_writer,
    two_writers_of_one_partition_do_not_hide_each_other,
    an_epoch_without_records_has_nothing_to_commit,
)
"""Each wants a case of its own. What it raises says what the sink does not keep."""
