"""map, flat_map, filter, process: as lambdas, plain functions, generators and classes with open and close."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from headwater.common import Row, Types
from headwater.datastream import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from tests.spark.harness import JobRunner, epochs_of


def words(line: str) -> Any:
    yield from line.split()


class Scaled(MapFunction):
    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.offset: int | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self.offset = 1000

    def map(self, value: int) -> int:
        assert self.offset is not None
        return value * self.factor + self.offset


class Twice(FlatMapFunction):
    def flat_map(self, value: int) -> Any:
        return [value, value]


class Odd(FilterFunction):
    def filter(self, value: int) -> bool:
        return value % 2 == 1


class LifeCycle(MapFunction):
    """Writes down what happens to it."""

    def __init__(self, journal: str) -> None:
        self.journal = journal

    def note(self, what: str) -> None:
        with open(self.journal, "a") as file:
            file.write(f"{what} {os.getpid()}\n")

    def open(self, runtime_context: RuntimeContext) -> None:
        self.note(f"open {runtime_context.get_task_name_with_subtasks()}")

    def map(self, value: int) -> int:
        return value

    def close(self) -> None:
        self.note("close")


def test_functions_as_lambda_plain_function_and_generator(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        lines = env.from_collection(["to be or", "", "not to be"])
        return lines.filter(bool).flat_map(words).map(lambda word: (word, len(word)))

    assert run_job(build, 2) == [(word, len(word)) for word in ["to", "be", "or", "not", "to", "be"]]


def test_function_classes(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(range(6)).filter(Odd()).flat_map(Twice()).map(Scaled(10))

    assert run_job(build) == [1010, 1010, 1030, 1030, 1050, 1050]


def test_flat_map_may_return_none_and_process_sees_its_context(run_job: JobRunner) -> None:
    class Context(ProcessFunction):
        def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
            now_ms = ctx.timer_service().current_processing_time()
            yield value, ctx.timestamp(), now_ms > 1_600_000_000_000

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([1, 2, 3]).flat_map(lambda n: None if n == 2 else [n]).process(Context())

    assert run_job(build) == [(1, None, True), (3, None, True)]


def test_a_function_is_opened_once_for_many_epochs_and_closed_at_the_end(run_job: JobRunner, tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def build(env: StreamExecutionEnvironment) -> Any:
        # Behind a rebalance the function has a stage of its own.
        return env.from_collection(range(40)).rebalance().map(LifeCycle(str(journal))).name("watched")

    result = run_job(build, 1, **epochs_of(4))
    assert Counter(result) == Counter(range(40))
    noted = [line.rsplit(" ", 1) for line in journal.read_text().splitlines()]
    # Spark may run the stage in several Python workers, more of them on a busy machine; each opens its own, once.
    opened = [pid for what, pid in noted if what == "open watched (1/1)"]
    assert 1 <= len(opened) == len(set(opened)) < 10
    assert "close" in {what for what, _ in noted}


def test_rows_tuples_and_project(run_job: JobRunner) -> None:
    def rows(env: StreamExecutionEnvironment) -> Any:
        kind = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        return env.from_collection([Row("ann", 3), Row("bob", 5)], kind).map(lambda row: row["name"] + str(row.age))

    assert run_job(rows) == ["ann3", "bob5"]

    def tuples(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection([(1, "a", 2.0), (2, "b", 3.0)]).project(2, 0)

    assert run_job(tuples) == [(2.0, 1), (3.0, 2)]


def test_python_files_are_importable_in_workers_and_slots(run_job: JobRunner, tmp_path: Path) -> None:
    (tmp_path / "helper_of_this_test.py").write_text("def twice(value):\n    return 2 * value\n")
    package = tmp_path / "package_of_this_test"
    package.mkdir()
    (package / "__init__.py").write_text("OFFSET = 5\n")

    def in_a_worker(value: int) -> int:
        import helper_of_this_test  # type: ignore[import-not-found]
        import package_of_this_test  # type: ignore[import-not-found]

        return int(helper_of_this_test.twice(value)) + int(package_of_this_test.OFFSET)

    class InASlot(KeyedProcessFunction):
        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
            import helper_of_this_test

            yield helper_of_this_test.twice(value)

    def build(env: StreamExecutionEnvironment) -> Any:
        env.add_python_file(str(tmp_path / "helper_of_this_test.py"))
        env.add_python_file(str(package))
        return env.from_collection([1, 2]).map(in_a_worker).key_by(lambda value: value).process(InASlot())

    assert sorted(run_job(build, 2)) == [14, 18]


def test_an_empty_collection_gives_nothing(run_job: JobRunner) -> None:
    assert run_job(lambda env: env.from_collection([]).map(lambda n: n), 2) == []


def test_the_same_stream_feeds_two_operators(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection(range(100)).map(lambda n: n)
        return numbers.map(lambda n: ("double", 2 * n)).union(numbers.map(lambda n: ("same", n)))

    expected = Counter([("double", 2 * n) for n in range(100)] + [("same", n) for n in range(100)])
    assert Counter(run_job(build, 2)) == expected
