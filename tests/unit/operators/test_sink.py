"""The sink operator: one writer per epoch attempt, nothing committed that was not prepared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import CheckpointError, UserCodeError
from headwater.testing import OneInputOperatorHarness


class LoggingSink(Sink):
    """Writes down every call; `fail_with` is raised by the next write."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.fail_with: Exception | None = None

    def create_writer(self, context: WriterContext) -> SinkWriter:
        self.log.append(("create", context.epoch, context.attempt_id))
        return LoggingWriter(self, context)

    def create_committer(self) -> Committer:
        raise NotImplementedError


class LoggingWriter(SinkWriter):
    def __init__(self, sink: LoggingSink, context: WriterContext) -> None:
        self._sink = sink
        self._attempt_id = context.attempt_id
        self._values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if self._sink.fail_with is not None:
            raise self._sink.fail_with
        self._values += zip(values, timestamps or [None] * len(values), strict=True)

    def prepare_commit(self) -> list[Any]:
        self._sink.log.append("prepare")
        return [(self._attempt_id, self._values)]

    def abort(self) -> None:
        self._sink.log.append("abort")

    def close(self) -> None:
        self._sink.log.append("close")


def test_each_epoch_has_its_own_writer_and_committables() -> None:
    sink = LoggingSink()
    harness = OneInputOperatorHarness(sink)
    harness.process_elements([1, 2], [10, 20])
    harness.process_element(3)
    first = harness.snapshot()
    harness.process_element(4)
    second = harness.snapshot()
    assert first.committables == (("1-0", [(1, 10), (2, 20), (3, None)]),)
    assert second.committables == (("2-0", [(4, None)]),)
    assert sink.log == [("create", 1, "1-0"), "prepare", "close", ("create", 2, "2-0"), "prepare", "close"]


def test_an_epoch_without_records_makes_no_writer() -> None:
    sink = LoggingSink()
    harness = OneInputOperatorHarness(sink)
    harness.process_elements([])
    assert harness.snapshot().committables == ()
    assert sink.log == []


def test_a_failed_epoch_is_aborted_and_replayed_by_another_attempt() -> None:
    sink = LoggingSink()
    harness = OneInputOperatorHarness(sink)
    harness.process_element("lost")
    harness.fail_epoch()
    harness.process_element("kept")
    assert harness.snapshot().committables == (("1-1", [("kept", None)]),)
    assert sink.log == [("create", 1, "1-0"), "abort", "close", ("create", 1, "1-1"), "prepare", "close"]


def test_what_an_attempt_left_that_nobody_aborted_is_not_committed() -> None:
    sink = LoggingSink()
    harness = OneInputOperatorHarness(sink)
    harness.process_element("left behind")
    harness.context.attempt_id = "1-7"
    assert harness.operator.prepare_commit() == []
    harness.process_element("kept")
    assert harness.operator.prepare_commit() == [("1-7", [("kept", None)])]
    assert sink.log.count("abort") == 1


def test_closing_in_mid_epoch_aborts() -> None:
    sink = LoggingSink()
    with OneInputOperatorHarness(sink) as harness:
        harness.process_element(1)
    assert sink.log[-2:] == ["abort", "close"]


def test_a_failing_writer_is_reported_with_operator_and_records() -> None:
    sink = LoggingSink()
    sink.fail_with = OSError("disk full")
    harness = OneInputOperatorHarness(sink, name="files")
    with pytest.raises(UserCodeError, match="disk full") as caught:
        harness.process_elements(["r1", "r2"])
    assert caught.value.operator_name == "files"
    assert "2 records" in caught.value.record_repr
    assert "'r1'" in caught.value.record_repr


def test_headwaters_own_errors_pass_unchanged() -> None:
    sink = LoggingSink()
    sink.fail_with = CheckpointError("part-1 is missing")
    with pytest.raises(CheckpointError, match="part-1"):
        OneInputOperatorHarness(sink).process_element(1)
