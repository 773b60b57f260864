"""Formats and dead letters with Kafka: changes of a table as messages, some of them damaged."""

from __future__ import annotations

import json

import pytest

from headwater.common import Row, RowKind, Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.formats.changelog_json import DebeziumJsonDeserializationSchema
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka import clients

TYPE = Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.INT()])
COUNT = 60


def message(number: int) -> bytes:
    if number % 10 == 4:
        return b"damaged %d" % number
    row = {"id": number, "n": number}
    if number % 10 == 5:
        return json.dumps({"op": "u", "before": row, "after": {**row, "n": -1}}).encode()
    return json.dumps({"op": "c", "after": row}).encode()


@pytest.mark.parametrize("at", STEPS)
def test_changes_and_damaged_messages_across_a_kill_at_each_step(broker: KafkaBroker, at: str) -> None:
    clients.produce(broker.bootstrap_servers, "in", map(message, range(COUNT)))
    results, letters = CollectingSink(), CollectingSink()

    def program() -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        source = clients.source(broker.bootstrap_servers)
        source.set_value_only_deserializer(DebeziumJsonDeserializationSchema(TYPE))
        stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "kafka").with_dead_letters(letters)
        stream.key_by(lambda row: row["id"]).reduce(lambda _, row: row).sink_to(results)
        env.execute()

    with in_process(epoch_records=9) as here:
        here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed):
            program()
        program()
    expected = [
        Row.of_kind(RowKind.INSERT, id=number, n=number) for number in range(COUNT) if number % 10 not in (4, 5)
    ]
    for number in range(5, COUNT, 10):
        expected.append(Row.of_kind(RowKind.UPDATE_BEFORE, id=number, n=number))
        expected.append(Row.of_kind(RowKind.UPDATE_AFTER, id=number, n=-1))
    assert sorted(map(str, results.results())) == sorted(map(str, expected))
    assert sorted(letter.raw for letter in letters.results()) == sorted(map(message, range(4, COUNT, 10)))
    assert all("of topic 'in'" in letter.where and letter.stage == "source" for letter in letters.results())
