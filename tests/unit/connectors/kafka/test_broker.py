"""The test broker, seen by a second client library: what both agree on is Kafka's protocol, not one client's view."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka.clients import produce, read_all


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def consumed(servers: str, topic: str, partitions: int, count: int) -> list[tuple[int, int, bytes]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        found: list[tuple[int, int, bytes]] = []
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found += [(each.partition, each.offset, each.value) for each in records]
        return sorted(found)
    finally:
        await consumer.stop()


def test_both_clients_read_what_either_has_written(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    produce(servers, "in", range(50))

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers)
        await producer.start()
        for number in range(50, 100):
            await producer.send("in", str(number).encode(), partition=number % 2, headers=[("h", b"1")])
        await producer.stop()

    run(write())
    theirs = run(consumed(servers, "in", 2, 100))
    ours = [(each.partition, each.offset, each.value) for each in read_all(servers, "in")]
    assert theirs == ours and sorted(int(value) for _, _, value in ours) == list(range(100))


def test_transactions_of_the_second_client_are_atomic_and_fenced(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers

    async def transact() -> None:
        first = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t")
        await first.start()
        async with first.transaction():
            await first.send("in", b"kept", partition=0)
            await first.send_offsets_to_transaction({TopicPartition("in", 1): 7}, "marks")
        await first.begin_transaction()
        await (await first.send("in", b"dropped", partition=0))
        second = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t")
        await second.start()
        async with second.transaction():
            await second.send("in", b"too", partition=0)
        with pytest.raises(KafkaError):
            await first.commit_transaction()
        await second.stop()
        await first.stop()

    run(transact())
    assert [each.value for each in read_all(servers, "in")] == [b"kept", b"too"]
    assert [each.value for each in read_all(servers, "in", "read_uncommitted")] == [b"kept", b"dropped", b"too"]
    assert run(consumed(servers, "in", 2, 2)) == [(0, 0, b"kept"), (0, 4, b"too")]
    assert broker.committed("marks") == {("in", 1): 7}


def test_what_is_stored_survives_that_the_broker_is_down(broker: KafkaBroker) -> None:
    produce(broker.bootstrap_servers, "in", ["a", "b"])
    broker.stop()
    broker.start()
    assert [each.value for each in read_all(broker.bootstrap_servers, "in")] == [b"a", b"b"]
