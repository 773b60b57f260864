"""The sink operator: one writer per epoch attempt, or one that stays; nothing committed that was not prepared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headwater.common.connector import Committer, ReusableSinkWriter, Sink, SinkWriter, WriterContext
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


class LastingSink(LoggingSink):
    def create_writer(self, context: WriterContext) -> SinkWriter:
        self.log.append(("create", context.epoch, context.attempt_id))
        return LastingWriter(self, context)


class LastingWriter(LoggingWriter, ReusableSinkWriter):
    def begin_epoch(self, context: WriterContext) -> None:
        self._sink.log.append(("begin", context.epoch, context.attempt_id))
        if self._sink.fail_with is not None:
            raise self._sink.fail_with
        self._attempt_id, self._values = context.attempt_id, []


class TestWriterThatStaysOpen:
    def test_it_goes_from_epoch_to_epoch(self) -> None:
        sink = LastingSink()
        with OneInputOperatorHarness(sink) as harness:
            harness.process_elements([1, 2])
            first = harness.snapshot()
            assert harness.snapshot().committables == (), "an epoch without records does not concern it"
            harness.process_element(3)
            third = harness.snapshot()
        assert first.committables == (("1-0", [(1, None), (2, None)]),)
        assert third.committables == (("3-0", [(3, None)]),)
        assert sink.log == [("create", 1, "1-0"), "prepare", ("begin", 3, "3-0"), "prepare", "close"]

    def test_after_abort_another_one_is_made(self) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)
        harness.process_element(1)
        harness.snapshot()
        harness.process_element("lost")
        harness.fail_epoch()
        harness.process_element("kept")
        assert harness.snapshot().committables == (("2-1", [("kept", None)]),)
        made, begun = ("create", 1, "1-0"), ("begin", 2, "2-0")
        assert sink.log == [made, "prepare", begun, "abort", "close", ("create", 2, "2-1"), "prepare"]

    def test_an_epoch_that_fails_before_its_first_record_leaves_it_as_it_is(self) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)
        harness.process_element(1)
        harness.snapshot()
        harness.fail_epoch()
        harness.process_element(2)
        assert harness.snapshot().committables == (("2-1", [(2, None)]),)
        assert sink.log == [("create", 1, "1-0"), "prepare", ("begin", 2, "2-1"), "prepare"]

    def test_an_attempt_that_failed_after_its_preparation_is_written_again(self) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)
        harness.process_element(1)
        harness.operator.prepare_commit()
        harness.operator.make_durable()
        harness.fail_epoch()
        harness.process_element(1)
        assert harness.snapshot().committables == (("1-1", [(1, None)]),)
        assert sink.log == [("create", 1, "1-0"), "prepare", ("begin", 1, "1-1"), "prepare"]

    def test_one_that_cannot_make_its_output_durable_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)

        def fail(self: LastingWriter) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(LastingWriter, "make_durable", fail)
            harness.process_element(1)
            with pytest.raises(OSError, match="disk full"):
                harness.snapshot()
        assert sink.log == [("create", 1, "1-0"), "prepare", "close"]
        harness.fail_epoch()
        harness.process_element(1)
        assert harness.snapshot().committables == (("1-1", [(1, None)]),)

    def test_one_that_cannot_begin_is_closed(self) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)
        harness.process_element(1)
        harness.snapshot()
        sink.fail_with = OSError("connection lost")
        with pytest.raises(OSError, match="connection lost"):
            harness.process_element(2)
        sink.fail_with = None
        harness.fail_epoch()
        harness.process_element(2)
        assert harness.snapshot().committables == (("2-1", [(2, None)]),)
        assert sink.log[2:] == [("begin", 2, "2-0"), "abort", "close", ("create", 2, "2-1"), "prepare"]

    def test_one_that_cannot_prepare_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sink = LastingSink()
        harness = OneInputOperatorHarness(sink)

        def fail(self: LastingWriter) -> list[Any]:
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(LastingWriter, "prepare_commit", fail)
            harness.process_element(1)
            with pytest.raises(OSError, match="disk full"):
                harness.operator.prepare_commit()
        assert sink.log == [("create", 1, "1-0"), "close"]
        harness.fail_epoch()
        harness.process_element(1)
        assert harness.snapshot().committables == (("1-1", [(1, None)]),)
