"""Dead letters on Spark, with shuffles and resident: functions in workers and in slots."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.common import Configuration, Encoder, Types, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSink, FileSource, RollingPolicy, StreamFormat
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink, assert_same_records

pytestmark = pytest.mark.spark


class CountAndFail(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 4, count
        if value % 100 == 7:
            raise ValueError("no")


def fail_sometimes(number: int) -> int:
    if number % 50 == 3:
        raise ValueError("no")
    return number


@pytest.mark.parametrize("engine", ["shuffle", "resident"])
def test_functions_in_workers_and_slots(tmp_path: Path, engine: str) -> None:
    configuration = Configuration.from_dict(
        {
            "parallelism.default": "2",
            "execution.checkpointing.dir": str(tmp_path / engine),
            "headwater.epoch.engine": engine,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    results, letters = CollectingSink(), CollectingSink()
    mapped = env.from_collection(list(range(200))).map(fail_sometimes).name("worker").with_dead_letters(letters)
    keyed = mapped.key_by(lambda n: n % 4).process(CountAndFail()).name("slot").with_dead_letters(letters)
    keyed.sink_to(results)
    env.execute()
    refused = [(letter.operator, pickle.loads(letter.raw)) for letter in letters.results()]
    assert sorted(refused) == sorted(
        [("worker", n) for n in range(200) if n % 50 == 3] + [("slot", n) for n in range(200) if n % 100 == 7]
    )
    counts: dict[int, int] = {}
    for number in range(200):
        if number % 50 != 3 and number % 100 != 7:
            counts[number % 4] = counts.get(number % 4, 0) + 1
    assert sorted(results.results()) == sorted((key, n) for key, count in counts.items() for n in range(1, count + 1))


class CountUnlessMarked(CountAndFail):
    """Fails until a file says that the program was corrected."""

    def __init__(self, corrected: str) -> None:
        self.corrected = Path(corrected)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield from ([key, count] for key, count in self._counted(value))

    def _counted(self, value: int) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count
        if value % 20 == 7 and not self.corrected.exists():
            raise ValueError("no")


def wait_for(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


@pytest.mark.parametrize("engine", ["shuffle", "resident"])
def test_letters_are_put_through_again_by_the_command(tmp_path: Path, engine: str, capsys: Any) -> None:
    letters, out, corrected = tmp_path / "letters", tmp_path / "out", tmp_path / "corrected"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "numbers").write_text("".join(f"{number}\n" for number in range(100)) + "not JSON\n")
    configuration = Configuration.from_dict(
        {
            "parallelism.default": "2",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "headwater.epoch.engine": engine,
            "headwater.dead-letters.dir": str(letters),
            "headwater.state.dir": str(tmp_path / "state"),
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(tmp_path / "in"))
    lines = env.from_source(source.monitor_continuously(1000).build(), WatermarkStrategy.no_watermarks(), "lines")
    keyed = lines.map(int).key_by(lambda n: n % 4).process(CountUnlessMarked(str(corrected))).name("slot")
    files = FileSink.for_row_format(str(out), Encoder(lambda each: f"{each[0]} {each[1]}\n".encode()))
    keyed.sink_to(files.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build())
    job = env.execute_async("letters-again")

    def written() -> list[tuple[int, ...]]:
        files = [path for path in out.rglob("part-*") if not path.name.startswith(".")]
        return [tuple(map(int, line.split())) for path in files for line in path.read_text().splitlines()]

    def arguments(*given: str) -> list[str]:
        return ["dead-letters", given[0], "letters-again", *given[1:], "--state-dir", str(tmp_path / "state")]

    try:
        wait_for(lambda: len(written()) == 95)
        wait_for(lambda: len(DeadLetterBox.read(str(letters)).open) == 6)
        corrected.touch()
        assert main(arguments("replay", "--all")) == 1, "one is still no JSON"
        assert "5 done" in (said := capsys.readouterr().out)
        assert "refused again" in said
        assert main(arguments("list")) == 0
        assert capsys.readouterr().out.count("lines") >= 1
        assert main(arguments("replay")) == 1
        assert "--all" in capsys.readouterr().err
        assert_same_records([number for number, _ in written()], list(range(100)))
        counts = sorted((number % 4, count) for number, count in written())
        assert counts == sorted((key, count) for key in range(4) for count in range(1, 26))
    finally:
        job.cancel().result()
