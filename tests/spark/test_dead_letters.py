"""Dead letters on Spark, with shuffles and resident: functions in workers and in slots."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration, Types
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink

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
