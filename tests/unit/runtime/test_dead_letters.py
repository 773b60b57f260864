"""Records that a format, a function, a key selector or a sink refuses: each is in the dead letters once, all others in
the results once, whatever fails beside it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.common import Configuration, Duration, Encoder, Row, Time, Types, WatermarkStrategy
from headwater.common.dead_letter import DeadLetter, DeadLetterSchema
from headwater.common.errors import HeadwaterError, PlanError, SerializationError, TypeMismatchError, UserCodeError
from headwater.common.serialization import SerializationSchema
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import BulkWriters, FileSink, FileSource, StreamFormat
from headwater.datastream.connectors.hybrid_source import HybridSource
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.datastream.formats.json import JsonRowSerializationSchema
from headwater.datastream.state import ValueStateDescriptor
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process
from tests.waiting import wait_until

NO_EVENT_TIME = WatermarkStrategy.no_watermarks()


def environment(**settings: Any) -> StreamExecutionEnvironment:
    given = {name.replace("__", ".").replace("_", "-"): str(value) for name, value in settings.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))


def numbers(env: StreamExecutionEnvironment, count: int = 40) -> Any:
    return env.from_collection(list(range(count)))


def odd_fails(number: int) -> int:
    if number % 7 == 3:
        raise ValueError(f"no {number}")
    return number * 10


BAD = [number for number in range(40) if number % 7 == 3]
GOOD = [number for number in range(40) if number % 7 != 3]


def records_of(letters: Iterable[DeadLetter]) -> list[Any]:
    return sorted(pickle.loads(letter.raw) for letter in letters if letter.raw is not None)


class CountAndFail(KeyedProcessFunction):
    """Changes its state, emits, and only then fails: nothing of that may stay."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(value)
        yield value % 2, count
        if value % 7 == 3:
            raise ValueError(f"no {value}")


def counted(values: Iterable[int]) -> list[tuple[int, int]]:
    """What CountAndFail gives for these records."""
    counts: dict[int, int] = {}
    results = []
    for value in values:
        counts[value % 2] = counts.get(value % 2, 0) + 1
        results.append((value % 2, counts[value % 2]))
    return sorted(results)


@pytest.mark.parametrize("epoch_records", [3, 1000])
class TestFunctions:
    def test_without_dead_letters_the_job_fails(self, epoch_records: int) -> None:
        with in_process(epoch_records=epoch_records), pytest.raises(UserCodeError, match=r"no \d"):
            env = environment()
            numbers(env).map(odd_fails).sink_to(CollectingSink())
            env.execute()

    def test_a_function_without_state(self, epoch_records: int) -> None:
        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            numbers(env).map(odd_fails).name("times ten").with_dead_letters(letters).map(lambda x: x + 1).sink_to(
                results
            )
            env.execute()
            assert sorted(results.results()) == [number * 10 + 1 for number in GOOD]
            assert records_of(letters.results()) == BAD
            letter = letters.results()[0]
            assert (letter.operator, letter.stage) == ("times ten", "function")
            assert f"ValueError('no {letter.record}')" in letter.error
            assert len({each.id for each in letters.results()}) == len(BAD)

    def test_a_function_that_changes_records_before_it_fails(self, epoch_records: int) -> None:
        def grow(record: dict[str, int]) -> dict[str, int]:
            record["n"] += 100
            if record["n"] % 7 == 4:
                raise ValueError("no")
            return record

        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            env.from_collection([{"n": n} for n in range(20)]).map(grow).with_dead_letters(letters).sink_to(results)
            env.execute()
            good = [n for n in range(20) if (n + 100) % 7 != 4]
            assert sorted(each["n"] for each in results.results()) == [n + 100 for n in good]
            bad = [pickle.loads(letter.raw)["n"] for letter in letters.results()]
            assert sorted(bad) == sorted(set(range(20)) - set(good))

    def test_a_generator_that_fails_after_it_has_yielded(self, epoch_records: int) -> None:
        def twice(number: int) -> Iterable[int]:
            yield number
            yield odd_fails(number)

        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            numbers(env).flat_map(twice).with_dead_letters(letters).sink_to(results)
            env.execute()
            assert sorted(results.results()) == sorted([n for g in GOOD for n in (g, g * 10)])
            assert records_of(letters.results()) == BAD

    def test_state_and_timers_know_nothing_of_a_refused_record(self, epoch_records: int) -> None:
        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            keyed = numbers(env).key_by(lambda n: n % 2).process(CountAndFail())
            keyed.with_dead_letters(letters).sink_to(results)
            env.execute()
            assert sorted(results.results()) == counted(GOOD)
            assert records_of(letters.results()) == BAD
            assert {letter.stage for letter in letters.results()} == {"function"}

    def test_a_window_whose_function_fails(self, epoch_records: int) -> None:
        def add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
            if other[0] % 7 == 3:
                raise ValueError("no")
            return one[0] + other[0], 0

        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(parallelism__default=1), CollectingSink(), CollectingSink()
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByValue())
            stream = env.from_collection([(n, 0) for n in range(40)]).assign_timestamps_and_watermarks(strategy)
            windows = stream.key_by(lambda each: each[1]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
            windows.reduce(add).with_dead_letters(letters).sink_to(results)
            env.execute()
            bad = [number for number in BAD if number != 10]  # nothing is added to the first record of a window
            expected = [sum(n for n in range(40) if n // 10 == ten and n not in bad) for ten in range(4)]
            assert [total for total, _ in results.results()] == expected
            assert [each[0] for each in records_of(letters.results())] == bad

    def test_keys_that_cannot_be_told(self, epoch_records: int) -> None:
        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(parallelism__default=2), CollectingSink(), CollectingSink()
            records = [{"k": n} if n % 7 != 3 else {"x": n} for n in range(40)]
            stream = env.from_collection(records).map(lambda each: each).with_dead_letters(letters)
            stream.key_by(lambda each: each["k"]).map(lambda each: each["k"]).sink_to(results)
            env.execute()
            assert sorted(results.results()) == GOOD
            assert {letter.stage for letter in letters.results()} == {"key"}
            assert sorted(pickle.loads(letter.raw)["x"] for letter in letters.results()) == BAD

    def test_values_that_do_not_fit_the_declared_type(self, epoch_records: int) -> None:
        with in_process(epoch_records=epoch_records):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            typed = numbers(env).map(lambda n: n if n % 7 != 3 else str(n), output_type=Types.INT())
            typed.with_dead_letters(letters).sink_to(results)
            env.execute()
            assert sorted(results.results()) == GOOD
            assert sorted(int(pickle.loads(letter.raw)) for letter in letters.results()) == BAD
            assert "does not fit the declared type" in letters.results()[0].error


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("epoch_records", [3, 1000])
def test_crashes_lose_and_double_nothing(epoch_records: int, step: str) -> None:
    results, letters = CollectingSink(), CollectingSink()

    def program() -> None:
        env = environment(parallelism__default=2)
        mapped = numbers(env).map(odd_fails).name("map").with_dead_letters(letters)
        keyed = mapped.map(lambda n: n // 10).key_by(lambda n: n % 2).process(EveryFifth()).name("fifth")
        keyed.with_dead_letters(letters).sink_to(results)
        env.execute()

    with in_process(epoch_records=epoch_records) as here:
        here.crash_job(epoch=1 if epoch_records == 3 else 0, at=step)
        with pytest.raises(JobCrashed):
            program()
        if epoch_records == 3:
            here.kill_slot("fifth", epoch=5)
            here.fail_attempt(epoch=6)
        program()
        assert sorted(results.results()) == counted(number for number in GOOD if number % 5)
        refused = {name: [each for each in letters.results() if each.operator == name] for name in ("map", "fifth")}
        assert records_of(refused["map"]) == BAD
        assert records_of(refused["fifth"]) == [number for number in GOOD if number % 5 == 0]
        assert len(letters.results()) == sum(map(len, refused.values()))


@pytest.mark.parametrize(
    "settings", [{"execution__runtime_mode": "BATCH"}, {"state__backend__type": "rocksdb"}], ids=["batch", "rocksdb"]
)
@pytest.mark.parametrize("epoch_records", [3, 1000])
def test_batch_mode_and_rocksdb(epoch_records: int, settings: dict[str, str]) -> None:
    with in_process(epoch_records=epoch_records):
        env, results, letters = environment(**settings), CollectingSink(), CollectingSink()
        keyed = numbers(env).key_by(lambda n: n % 2).process(CountAndFail())
        keyed.with_dead_letters(letters).sink_to(results)
        env.execute()
        assert sorted(results.results()) == counted(GOOD)
        assert records_of(letters.results()) == BAD


class EveryFifth(CountAndFail):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield from super().process_element(value, ctx)
        if value % 5 == 0:
            raise RuntimeError(f"every fifth: {value}")


class ByValue:
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


def test_an_error_further_down_is_not_the_operators_own() -> None:
    with in_process(), pytest.raises(UserCodeError, match="operator 'second' failed"):
        env = environment()
        first = numbers(env).map(lambda n: n).with_dead_letters(CollectingSink())
        first.map(odd_fails).name("second").sink_to(CollectingSink())
        env.execute()


def test_a_timer_that_fails_has_no_record_to_refuse() -> None:
    class Timer(KeyedProcessFunction):
        def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
            ctx.timer_service().register_event_time_timer(1)

        def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> None:
            raise ValueError("the timer")

    with in_process(), pytest.raises(UserCodeError, match="the timer"):
        env = environment()
        keyed = numbers(env).key_by(lambda n: n).process(Timer()).with_dead_letters(CollectingSink())
        keyed.sink_to(CollectingSink())
        env.execute()


class TestSources:
    def lines(self, tmp_path: Path) -> Path:
        (tmp_path / "in.jsonl").write_bytes(b'{"n": 1}\nnot json\n{"n": 2}\n\xff\xfe\n{"n": 3}\n')
        return tmp_path / "in.jsonl"

    def test_a_format(self, tmp_path: Path) -> None:
        path = self.lines(tmp_path)
        source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(path)).build()
        with in_process(epoch_records=2):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            env.from_source(source, NO_EVENT_TIME, "lines").with_dead_letters(letters).sink_to(results)
            env.execute()
            assert [each["n"] for each in results.results()] == [1, 2, 3]
            assert [(each.raw, each.where, each.operator) for each in letters.results()] == [
                (b"not json", f"file {path}, line 2", "lines"),
                (b"\xff\xfe", f"file {path}, line 4", "lines"),
            ]
            assert {each.stage for each in letters.results()} == {"source"}

    def test_one_source_after_the_other(self, tmp_path: Path) -> None:
        path = self.lines(tmp_path)
        source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(path)).build()
        with in_process(epoch_records=2):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            both = HybridSource.builder(source).add_source(source).build()
            env.from_source(both, NO_EVENT_TIME, "lines").with_dead_letters(letters).sink_to(results)
            env.execute()
            assert [each["n"] for each in results.results()] == [1, 2, 3] * 2
            assert [each.raw for each in letters.results()] == [b"not json", b"\xff\xfe"] * 2

    def test_csv_fields(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text('id,n\n1,5\n2,many\n3,"x""y",z\n4,6\n')
        form = StreamFormat.csv_format(converters={"n": int})
        source = FileSource.for_record_stream_format(form, str(tmp_path / "a.csv")).build()
        with in_process():
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            env.from_source(source, NO_EVENT_TIME, "lines").with_dead_letters(letters).sink_to(results)
            env.execute()
            assert [each["n"] for each in results.results()] == [5, 6]
            assert [each.raw for each in letters.results()] == [b"2,many", b'3,"x""y",z']

    def test_a_policy_of_its_own_stays(self, tmp_path: Path) -> None:
        builder = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(self.lines(tmp_path)))
        with in_process():
            env, letters = environment(), CollectingSink()
            stream = env.from_source(builder.set_bad_record_policy("skip").build(), NO_EVENT_TIME, "lines")
            stream.with_dead_letters(letters).sink_to(CollectingSink())
            env.execute()
            assert letters.results() == []

    def test_timestamps_that_cannot_be_told(self) -> None:
        class At:
            def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
                return int(value["at"])

        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner(At())
        with in_process(epoch_records=4):
            env, results, letters = environment(), CollectingSink(), CollectingSink()
            records = [{"at": n} if n % 7 != 3 else {"n": n} for n in range(40)]
            stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
            stream.with_dead_letters(letters).sink_to(results)
            env.execute()
            assert sorted(each["at"] for each in results.results()) == GOOD
            assert sorted(pickle.loads(each.raw)["n"] for each in letters.results()) == BAD


class TestSinks:
    def test_a_sink_of_rows(self, tmp_path: Path) -> None:
        schema = JsonRowSerializationSchema.builder().with_type_info(Types.ROW_NAMED(["n"], [Types.INT()])).build()
        with in_process(epoch_records=5):
            env, letters = environment(), CollectingSink()
            rows = numbers(env).map(lambda n: Row(n=n) if n % 7 != 3 else Row(other=n))
            sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.of_schema(schema)).build()
            rows.sink_to(sink).with_dead_letters(letters)
            env.execute()
            lines = [
                line for file in sorted((tmp_path / "out").rglob("part-*")) for line in file.read_text().splitlines()
            ]
            assert sorted(json.loads(line)["n"] for line in lines) == GOOD
            assert sorted(pickle.loads(each.raw)[0] for each in letters.results()) == BAD
            assert {each.stage for each in letters.results()} == {"sink"}

    def test_parquet(self, tmp_path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        with in_process():
            env, letters = environment(), CollectingSink()
            rows = numbers(env).map(lambda n: {"n": n} if n % 7 != 3 else {"n": "x"})
            writer = BulkWriters.parquet(pyarrow.schema([("n", pyarrow.int32())]))
            rows.sink_to(FileSink.for_bulk_format(str(tmp_path / "out"), writer).build()).with_dead_letters(letters)
            env.execute()
            assert sorted(pyarrow.parquet.read_table(tmp_path / "out")["n"].to_pylist()) == GOOD
            assert len(letters.results()) == len(BAD)

    def test_what_is_not_about_a_record_fails_the_job(self) -> None:
        class Away(SerializationSchema):
            def serialize(self, value: Any) -> bytes:
                raise ConnectionError("the server is away")

        with in_process(), pytest.raises(UserCodeError, match="the server is away"):
            env = environment()
            sink = FileSink.for_row_format("/dev/shm/unused", Encoder.of_schema(Away())).build()
            numbers(env).sink_to(sink).with_dead_letters(CollectingSink())
            env.execute()


class TestJobSetting:
    def test_all_operators_write_to_one_directory(self, tmp_path: Path) -> None:
        (tmp_path / "in").write_text('{"n": 1}\nnot json\n{"n": 2}\n{"m": 3}\n{"n": 0}\n')
        source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "in")).build()
        letters = tmp_path / "letters"
        with in_process():
            env, results = environment(headwater__dead_letters__dir=letters), CollectingSink()
            stream = env.from_source(source, NO_EVENT_TIME, "lines").map(lambda each: each["n"]).name("n")
            stream.key_by(lambda n: n).map(lambda n: 6 // n).name("divide").sink_to(results)
            env.execute()
            assert sorted(results.results()) == [3, 6]
        lines = [line for file in letters.rglob("part-*") for line in file.read_bytes().splitlines()]
        found = {letter.operator: letter for letter in map(DeadLetter.from_json, lines)}
        assert len(lines) == 3
        assert found["lines"].raw == b"not json"
        assert pickle.loads(found["n"].raw or b"") == {"m": 3}
        assert "ZeroDivisionError" in found["divide"].error

    def test_it_keeps_the_identity_of_all_operators(self, tmp_path: Path) -> None:
        """A job gets dead letters when it resumes, and finds its state."""
        results = CollectingSink()

        def program(**settings: Any) -> None:
            env = environment(parallelism__default=2, **settings)
            numbers(env).key_by(lambda n: n % 2).process(CountAndFail()).sink_to(results)
            env.execute()

        with in_process(tmp_path / "checkpoints", epoch_records=2):
            with pytest.raises(UserCodeError, match=r"no \d"):
                program()
            program(headwater__dead_letters__dir=tmp_path / "letters")
            assert sorted(results.results()) == counted(GOOD)


class TestLimits:
    def run(self, limit: dict[str, Any], count: int = 400, epoch_records: int = 50) -> None:
        with in_process(epoch_records=epoch_records):
            env = environment(**limit)
            numbers(env, count).map(odd_fails).with_dead_letters(CollectingSink()).sink_to(CollectingSink())
            env.execute()

    def test_too_many_within_a_minute(self) -> None:
        self.run({"headwater__dead_letters__max_per_minute": 57})
        with pytest.raises(HeadwaterError, match=r"57 dead letters within a minute: more than .*max-per-minute = 56"):
            self.run({"headwater__dead_letters__max_per_minute": 56})

    def test_too_large_a_share(self) -> None:
        self.run({"headwater__dead_letters__max_percent": 20})
        with pytest.raises(HeadwaterError, match=r"1.\.. % of the records of the last minute are dead letters"):
            self.run({"headwater__dead_letters__max_percent": 10})

    def test_few_records_are_no_share(self) -> None:
        self.run({"headwater__dead_letters__max_percent": 10}, count=40)

    def test_an_operator_with_state_does_not_try_for_ever(self) -> None:
        with in_process(), pytest.raises(UserCodeError, match="no 17"):
            env = environment(headwater__dead_letters__max_per_minute=2)
            keyed = numbers(env).key_by(lambda n: n % 2).process(CountAndFail())
            keyed.with_dead_letters(CollectingSink()).sink_to(CollectingSink())
            env.execute()


def test_told_at_the_call() -> None:
    env = environment()
    stream = numbers(env).map(odd_fails)
    with pytest.raises(TypeMismatchError, match=r"expects a Sink or a directory, found <class"):
        stream.with_dead_letters(FileSink)  # type: ignore[arg-type]
    stream.with_dead_letters(CollectingSink())
    with pytest.raises(PlanError, match="twice"):
        stream.with_dead_letters(CollectingSink())
    with pytest.raises(PlanError, match="it is no operator"):
        stream.key_by(lambda n: n).with_dead_letters(CollectingSink())


def test_letters_as_lines() -> None:
    letter = DeadLetter(
        "i", "j", "o", "u", "source", "e", "w", b"\xff", "r", 3, 4, None, {"key": b"\0", "n": 1, "x": None}
    )
    assert DeadLetter.from_json(letter.to_json()) == letter
    for line in (b"{", b"[]", b'{"raw": null}', letter.to_json().replace(b"/w==", b"?")):
        with pytest.raises(SerializationError, match="is no dead letter"):
            DeadLetter.from_json(line)


class TestCommandAndReplay:
    """Letters in files, looked at from the terminal and put through a corrected program."""

    @pytest.fixture
    def letters(self, tmp_path: Path) -> Path:
        (tmp_path / "in").write_text("1\nnot a number\n0\n")
        source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "in")).build()
        with in_process():
            env = environment(headwater__dead_letters__dir=tmp_path / "letters")
            env.from_source(source, NO_EVENT_TIME, "lines").map(lambda n: 6 // n).name("divide").sink_to(
                CollectingSink()
            )
            env.execute()
        return tmp_path / "letters"

    def test_list_and_show(self, letters: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["dead-letters", "list", str(letters)]) == 0
        listed = capsys.readouterr().out.splitlines()
        assert len(listed) == 3
        assert main(["dead-letters", "list", str(letters), "--operator", "divide", "--json"]) == 0
        (line,) = capsys.readouterr().out.splitlines()
        letter = DeadLetter.from_json(line.encode())
        assert letter.value() == 0
        assert main(["dead-letters", "show", str(letters), letter.id]) == 0
        shown = capsys.readouterr().out
        assert "operator: divide (map-" in shown
        assert "ZeroDivisionError" in shown
        assert main(["dead-letters", "show", str(letters), "nothing"]) == 1
        assert "no dead letter with the id 'nothing'" in capsys.readouterr().err
        assert main(["dead-letters", "list", str(letters / "missing")]) == 1
        assert "there is nothing at" in capsys.readouterr().err

    def test_what_is_no_letter_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "part-0").write_text("garbage\n")
        assert main(["dead-letters", "list", str(tmp_path)]) == 1
        assert "part-0, line 1: b'garbage" in capsys.readouterr().err

    def test_a_corrected_program_reads_them(self, letters: Path) -> None:
        form = StreamFormat.schema_lines_format(DeadLetterSchema())
        source = FileSource.for_record_stream_format(form, str(letters)).build()
        with in_process():
            env, results = environment(), CollectingSink()
            refused = env.from_source(source, NO_EVENT_TIME, "letters").filter(
                lambda letter: letter.stage == "function"
            )
            refused.map(lambda letter: letter.value()).map(lambda n: 6 // (n or 6)).sink_to(results)
            env.execute()
            assert results.results() == [1]

    def test_bytes_are_no_record(self, letters: Path) -> None:
        lines = [line for file in letters.rglob("part-*") for line in file.read_bytes().splitlines()]
        (source,) = [each for each in map(DeadLetter.from_json, lines) if each.stage == "source"]
        assert source.raw == b"not a number"
        with pytest.raises(SerializationError, match="has no record, only bytes"):
            source.value()


@pytest.mark.parametrize("stage", ["source", "function"])
def test_letters_of_a_job_that_began_anew_are_others(tmp_path: Path, stage: str) -> None:
    """It has the same id, and counts its epochs from the beginning; nothing of what was put through since is left."""
    letters = tmp_path / "letters"
    (tmp_path / "lines").write_text("1\n" + ("bad\n" if stage == "source" else "3\n"))
    lines = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "lines"))
    for runs in (1, 2):
        with in_process(tmp_path / "checkpoints", epoch_records=10):
            env = environment(
                headwater__dead_letters__dir=letters,
                execution__checkpointing__externalized_checkpoint_retention="DELETE_ON_CANCELLATION",
            )
            endless = env.from_source(lines.monitor_continuously(1000).build(), NO_EVENT_TIME, "numbers")
            endless.map(lambda number: 1 // (number - 3)).sink_to(CollectingSink())
            job = env.execute_async("anew")
            wait_until(lambda runs=runs: letters.exists() and len(list(letters.rglob("part-*"))) >= runs)  # type: ignore[misc]
            job.cancel().result()
    assert len(DeadLetterBox.read(str(letters)).letters) == 2
