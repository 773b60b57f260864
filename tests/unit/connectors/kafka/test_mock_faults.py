"""Faults of a cluster of three brokers (librdkafka's mock): nothing is lost, nothing is reordered, the job goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from headwater.common import Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.kafka import DeliveryGuarantee
from headwater.testing import in_process
from headwater.testing.kafka import Api
from tests.unit.connectors.kafka import clients
from tests.unit.connectors.kafka.mock_cluster import MockCluster

COUNT = 200


def change_leaders(cluster: MockCluster) -> None:
    for topic in ("in", "out"):
        for partition in range(2):
            for broker in (1, 2, 3):
                cluster.set_leader(topic, partition, broker)


def lose_a_broker(cluster: MockCluster) -> threading.Timer:
    cluster.set_down(1)
    timer = threading.Timer(2, cluster.set_up, (1,))
    timer.start()
    return timer


def answer_with_errors(cluster: MockCluster) -> None:
    passing = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE)
    cluster.fail_requests(Api.PRODUCE, *passing)
    cluster.fail_requests(Api.FETCH, *passing)


def throttle(cluster: MockCluster) -> None:
    for broker in (1, 2, 3):
        cluster.slow_down(broker, 150)


@pytest.mark.parametrize("fault", [change_leaders, lose_a_broker, answer_with_errors, throttle])
def test_a_job_lives_through_faults_of_the_cluster(fault: Callable[[MockCluster], Any]) -> None:
    with MockCluster(3, {"in": 2, "out": 2}) as cluster, in_process(epoch_records=20) as here:
        servers = cluster.bootstrap_servers
        clients.produce(servers, "in", range(COUNT))
        timers: list[Any] = []
        here.call(lambda _: timers.append(fault(cluster)), epoch=3)
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(clients.source(servers).build(), WatermarkStrategy.no_watermarks(), "kafka")
        stream.map(lambda text: f"k{int(text) % 2} {text}", Types.STRING()).sink_to(
            clients.sink(servers, DeliveryGuarantee.AT_LEAST_ONCE)
        )
        env.execute("faults")
        for timer in timers:
            if timer is not None:
                timer.join()
        written = clients.read_all(servers, "out")
    by_key: dict[str, list[int]] = {}
    for record in written:
        assert record.value is not None
        key, number = record.value.decode().split()
        by_key.setdefault(key, []).append(int(number))
    assert by_key == {"k0": list(range(0, COUNT, 2)), "k1": list(range(1, COUNT, 2))}
