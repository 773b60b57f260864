"""Dead letters that are put through again: each once, whatever dies meanwhile; done only when that is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, Encoder, Types, WatermarkStrategy
from headwater.common.errors import HeadwaterError, SerializationError
from headwater.common.rejected import Rejected
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from headwater.datastream.connectors.kafka import KafkaRecordDeserializationSchema, KafkaSource
from headwater.datastream.connectors.kafka.record import KafkaRecord
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process

COUNT = 40
ASKED = 6
"""The epoch at whose begin the letters are asked for: then comes one for a checkpoint, then that with the letters."""

broken = True
"""What is to be corrected: every process of these tests sees it, because there is only one."""


@pytest.fixture(autouse=True)
def _a_broken_program() -> Iterator[None]:
    global broken
    broken = True
    yield
    broken = True


def fails(number: int, when: int) -> bool:
    return broken and number % 7 == when


def mapped(number: int) -> int:
    if fails(number, 1):
        raise ValueError("map")
    return number


def key(number: int) -> int:
    if fails(number, 2):
        raise ValueError("key")
    return number % 2


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count
        if fails(value, 3):
            raise ValueError("process")


def line(value: tuple[int, int]) -> bytes:
    if fails(value[0], 4):
        raise SerializationError("sink")
    return f"{value[0]} {value[1]}\n".encode()


class Program:
    """A source, a function, keys, state and a sink that all refuse some records, until it is corrected."""

    def __init__(self, directory: Path, parallelism: int = 1) -> None:
        self.letters = directory / "letters"
        self.out = directory / "out"
        self.input = directory / "numbers"
        self.input.write_text("".join(f"{number}\n" for number in range(COUNT)))
        self.parallelism = parallelism

    def run(self, directory: str | None = None) -> None:
        settings = {"headwater.dead-letters.dir": directory or str(self.letters)}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(self.parallelism)
        source = FileSource.for_record_stream_format(
            StreamFormat.csv_format(False, ["n"], converters={"n": read}), str(self.input)
        )
        numbers = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "numbers")
        keyed = numbers.map(lambda row: row["n"]).map(mapped).name("map").key_by(key)
        counted = keyed.process(Count()).name("count")
        counted.sink_to(FileSink.for_row_format(str(self.out), Encoder(line)).build()).name("out")
        env.execute()

    def numbers(self) -> list[int]:
        return sorted(number for number, _ in self.results())

    def results(self) -> list[tuple[int, int]]:
        files = [path for path in self.out.rglob("part-*") if not path.name.startswith(".")]
        return sorted(tuple(map(int, line.split())) for path in files for line in path.read_text().splitlines())  # type: ignore[misc]

    def box(self) -> DeadLetterBox:
        return DeadLetterBox.read(str(self.letters))


def read(text: str) -> int:
    if fails(int(text), 0):
        raise ValueError("source")
    return int(text)


def correct_and_ask(program: Program, answers: list[Any], ids: list[str] | None = None) -> Callable[[Any], None]:
    def ask(job: Any) -> None:
        global broken
        broken = False
        answers.append(job.replay_dead_letters(str(program.letters), ids))

    return ask


def check_whole(program: Program) -> None:
    assert program.numbers() == list(range(COUNT))
    by_key = {parity: sorted(count for number, count in program.results() if number % 2 == parity) for parity in (0, 1)}
    assert by_key == {parity: list(range(1, COUNT // 2 + 1)) for parity in (0, 1)}, "each was counted once"
    assert program.box().open == []


@pytest.mark.parametrize("parallelism", [1, 3])
def test_every_stage_gets_its_letters_back(tmp_path: Path, parallelism: int) -> None:
    program, answers = Program(tmp_path, parallelism), []  # type: tuple[Program, list[Any]]
    with in_process(epoch_records=3) as here:
        here.call(correct_and_ask(program, answers), epoch=ASKED)
        program.run()
    (answer,) = answers
    refused = program.box().letters
    assert {letter.stage for letter in refused} == {"source", "function", "key", "sink"}
    assert sorted(answer.result()["done"]) == sorted(letter.id for letter in refused)
    assert answer.result()["refused_again"] == answer.result()["not_possible"] == {}
    check_whole(program)


@pytest.mark.parametrize(
    ("epoch", "step"),
    [(ASKED + 1, step) for step in STEPS if step != "chunk-received"] + [(ASKED + 2, step) for step in STEPS],
)
def test_a_crash_neither_loses_nor_doubles_them(tmp_path: Path, epoch: int, step: str) -> None:
    program, answers = Program(tmp_path, 2), []  # type: tuple[Program, list[Any]]
    with in_process(epoch_records=3) as here:
        here.call(correct_and_ask(program, answers), epoch=ASKED)
        here.crash_job(epoch=epoch, at=step)
        with pytest.raises(JobCrashed):
            program.run()
        here.call(correct_and_ask(program, answers), epoch=ASKED + 4)
        program.run()
    first, second = answers
    assert not first.done()
    is_durable = epoch == ASKED + 2 and step in ("manifest-written", "sink-committed")
    assert bool(second.result()["done"]) == (not is_durable), "what was committed again is not there to be asked for"
    check_whole(program)


@pytest.mark.parametrize("step", STEPS[:5])
def test_an_attempt_that_fails_is_repeated_with_them(tmp_path: Path, step: str) -> None:
    program, answers = Program(tmp_path), []  # type: tuple[Program, list[Any]]
    with in_process(epoch_records=3) as here:
        here.call(correct_and_ask(program, answers), epoch=ASKED)
        here.fail_attempt(epoch=ASKED + 2, at=step, times=2)
        program.run()
    assert answers[0].result()["done"]
    check_whole(program)


def test_a_slot_that_dies_takes_the_job_back_and_they_come_again(tmp_path: Path) -> None:
    program, answers = Program(tmp_path), []  # type: tuple[Program, list[Any]]
    with in_process(epoch_records=3, checkpoint_epochs=100) as here:
        here.call(correct_and_ask(program, answers), epoch=ASKED)
        here.kill_slot("count", epoch=ASKED + 2)
        program.run()
    assert answers[0].result()["done"]
    check_whole(program)


def test_what_is_refused_again_is_a_new_letter(tmp_path: Path) -> None:
    program, answers = Program(tmp_path), []  # type: tuple[Program, list[Any]]

    def ask_too_early(job: Any) -> None:
        answers.append(job.replay_dead_letters(str(program.letters)))

    with in_process(epoch_records=3) as here:
        here.call(ask_too_early, epoch=ASKED)
        here.call(correct_and_ask(program, answers), epoch=ASKED + 4)
        program.run()
    early, late = (answer.result() for answer in answers)
    assert not early["done"]
    box = program.box()
    for old, new in early["refused_again"].items():
        before, after = box.find(old), box.find(new)
        assert after.replaces == old and after.id != old
        assert (after.raw, after.stage, after.operator) == (before.raw, before.stage, before.operator)
    assert {box.find(old).stage for old in early["refused_again"]} == {"source", "function", "key", "sink"}
    assert set(early["refused_again"].values()) <= set(late["done"])
    assert not set(early["refused_again"]) & set(late["done"])
    check_whole(program)


def test_one_of_them(tmp_path: Path) -> None:
    program, answers, chosen = Program(tmp_path), [], []  # type: tuple[Program, list[Any], list[str]]

    def ask_for_one(job: Any) -> None:
        chosen.append(next(letter.id for letter in program.box().open if letter.operator == "count"))
        correct_and_ask(program, answers, chosen)(job)

    with in_process(epoch_records=3) as here:
        here.call(ask_for_one, epoch=ASKED)
        here.call(correct_and_ask(program, answers, chosen), epoch=ASKED + 4)
        here.call(correct_and_ask(program, answers, ["nothing"]), epoch=ASKED + 5)
        program.run()
    assert answers[0].result()["done"] == chosen
    with pytest.raises(HeadwaterError, match=r"was put through before, and is done"):
        answers[1].result()
    with pytest.raises(HeadwaterError, match="no dead letter with the id 'nothing'"):
        answers[2].result()
    assert chosen[0] not in [letter.id for letter in program.box().open]


def test_what_cannot_be_put_through(tmp_path: Path) -> None:
    program, answers = Program(tmp_path), []  # type: tuple[Program, list[Any]]
    with in_process(epoch_records=3):
        program.run()
    other = Program(tmp_path)
    other.out = tmp_path / "elsewhere"

    def other_program() -> None:
        env = StreamExecutionEnvironment.get_execution_environment(Configuration())
        numbers = env.from_collection(list(range(20))).map(lambda n: n).name("other")
        numbers.sink_to(CollectingSink())
        env.execute()

    with in_process(epoch_records=3) as here:
        here.call(correct_and_ask(program, answers), epoch=2)
        ids = [program.box().open[0].id]
        here.call(correct_and_ask(program, answers, ids), epoch=4)
        here.call(lambda job: answers.append(job.replay_dead_letters(str(tmp_path / "nowhere"))), epoch=5)
        other_program()
    assert not answers[0].result()["done"]
    for problem in answers[0].result()["not_possible"].values():
        assert "has no such operator" in problem or "has no dead letters in this job" in problem
    for answer in answers[1:]:
        with pytest.raises(HeadwaterError):
            answer.result()


def test_a_message_of_kafka_is_read_again_with_its_key_and_headers() -> None:
    record = KafkaRecord("t", 3, 7, 1000, b"k", b"v", (("h", b"x"),))
    source = KafkaSource.builder().set_bootstrap_servers("none:1").set_topics("t")
    source = source.set_deserializer(KafkaRecordDeserializationSchema.records()).build()
    assert list(source.read_again(record.rejected("bad", "t-3"))) == [record]
    assert isinstance(record.rejected("bad", "t-3"), Rejected)
