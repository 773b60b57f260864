"""Print, collect, function and discard sinks."""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import Any

import pytest

from headwater.common.connector import Sink, WriterContext
from headwater.common.errors import ConfigurationError, HeadwaterError, SerializationError, UserCodeError
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.datastream.connectors.collect_sink import CollectSink, collected_results
from headwater.datastream.connectors.function_sink import DiscardSink, FunctionSink
from headwater.datastream.connectors.print_sink import PrintSink


def context(partition: int = 0, parallelism: int = 1, epoch: int = 1) -> WriterContext:
    return WriterContext("job", "my sink", partition, parallelism, f"{epoch}-0", epoch)


def write(sink: Sink, values: list[Any], where: WriterContext | None = None) -> list[Any]:
    writer = sink.create_writer(where or context())
    writer.write_batch(values, None)
    return writer.prepare_commit()


class TestPrint:
    @pytest.mark.parametrize(
        ("identifier", "parallelism", "line"),
        [("", 1, "x"), ("", 4, "3> x"), ("id", 1, "id> x"), ("id", 4, "id:3> x")],
    )
    def test_prefixes_are_those_of_flink(self, identifier: str, parallelism: int, line: str, capsys: Any) -> None:
        sink = PrintSink(identifier)
        sink.create_committer().commit(write(sink, ["x"], context(2, parallelism)))
        assert capsys.readouterr().out == line + "\n"

    def test_records_look_as_in_pyflink(self, capsys: Any) -> None:
        typed = PrintSink(type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
        typed.create_committer().commit(write(typed, [("a", 1)]))
        untyped = PrintSink()
        untyped.create_committer().commit(write(untyped, [("a", 1), Row("a", 1)]))
        assert capsys.readouterr().out.splitlines() == ["(a,1)", "('a', 1)", "+I[a, 1]"]

    def test_standard_error(self, capsys: Any) -> None:
        sink = PrintSink(stderr=True)
        sink.create_committer().commit(write(sink, ["x"]))
        assert capsys.readouterr().err == "x\n"

    def test_partitions_are_printed_in_order(self, capsys: Any) -> None:
        sink = PrintSink()
        committables = write(sink, ["b"], context(1, 2)) + write(sink, ["a"], context(0, 2))
        sink.create_committer().commit(committables)
        assert capsys.readouterr().out == "1> a\n2> b\n"

    def test_a_closed_output_is_no_reason_to_wait_for_another_reader(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read, write_end = os.pipe()
        os.close(read)
        sink = PrintSink()
        with open(write_end, "wb", buffering=0) as closed:  # a buffer would try again when it is closed
            monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(closed, write_through=True))
            with pytest.raises(HeadwaterError, match="nobody reads any more"):
                sink.create_committer().commit(write(sink, ["x"]))


class TestCollect:
    def test_results_are_iterated_as_they_are_committed(self) -> None:
        sink = CollectSink()
        results = collected_results(sink.collect_id)
        committer = sink.create_committer()
        seen: list[Any] = []
        got_two, done = threading.Event(), threading.Event()

        def consume() -> None:
            for record in results:
                seen.append(record)
                if len(seen) == 2:
                    got_two.set()
            done.set()

        thread = threading.Thread(target=consume)
        thread.start()
        committer.commit(write(sink, [1, 2], context(epoch=1)))
        assert got_two.wait(10) and not done.is_set()
        committer.commit(write(sink, [3], context(epoch=2)))
        results.finish()
        thread.join(10)
        assert seen == [1, 2, 3] and done.is_set()

    def test_a_failure_is_raised_after_the_records(self) -> None:
        results = collected_results("failing")
        results.add(0, "t", [1])
        results.finish(RuntimeError("job failed"))
        iterator = iter(results)
        assert next(iterator) == 1
        with pytest.raises(RuntimeError, match="job failed"):
            next(iterator)

    def test_a_committer_that_is_closed_does_not_hide_the_failure_that_closed_it(self) -> None:
        sink = CollectSink()
        sink.create_committer().close()
        results = collected_results(sink.collect_id)
        results.finish(RuntimeError("job failed"))
        with pytest.raises(RuntimeError, match="job failed"):
            next(iter(results))

    def test_an_older_epoch_is_never_delivered_again(self) -> None:
        sink = CollectSink()
        committer = sink.create_committer()
        first, second = write(sink, [1], context(epoch=1)), write(sink, [2], context(epoch=2))
        for committables in (first, second, first, second):
            committer.commit(committables)
        collected_results(sink.collect_id).finish()
        assert list(collected_results(sink.collect_id)) == [1, 2]

    def test_closed_results_are_forgotten(self) -> None:
        results = collected_results("gone")
        results.close()
        assert list(results) == []
        assert collected_results("gone") is not results

    def test_a_record_that_cannot_be_pickled_is_named(self) -> None:
        with pytest.raises(SerializationError, match=r"'my sink' .*lock"):
            write(CollectSink(), [1, threading.Lock()])


class TestFunction:
    def test_callables_and_sink_functions(self) -> None:
        seen: list[Any] = []
        assert write(FunctionSink(seen.append), [1, 2]) == []

        class WithContext:
            def open(self, runtime_context: Any) -> None:
                seen.append(runtime_context.operator_name)

            def invoke(self, value: Any, sink_context: Any) -> None:
                seen.append((value, sink_context.timestamp()))

            def close(self) -> None:
                seen.append("closed")

        class WithoutContext:
            def invoke(self, value: Any) -> None:
                seen.append([value])

        writer = FunctionSink(WithContext()).create_writer(context())
        writer.write_batch([3, 4], [30, None])
        writer.write_batch([5], None)
        writer.close()
        write(FunctionSink(WithoutContext()), [6])
        assert seen == [1, 2, "my sink", (3, 30), (4, None), (5, None), "closed", [6]]

    def test_an_error_names_operator_record_and_epoch(self) -> None:
        def fails(value: int) -> None:
            if value == 2:
                raise ValueError("no twos")

        with pytest.raises(UserCodeError) as failed:
            write(FunctionSink(fails), [1, 2, 3], context(epoch=9))
        assert (failed.value.operator_name, failed.value.record_repr, failed.value.epoch) == ("my sink", "2", 9)
        assert "no twos" in str(failed.value)

    def test_what_is_no_function_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="add_sink got 'print'"):
            FunctionSink("print")

    def test_discard(self) -> None:
        assert write(DiscardSink(), [1, 2]) == []
        DiscardSink().create_committer().commit([])
