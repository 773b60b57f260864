"""Whole jobs from Kafka to Kafka, in this process, against the test broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.kafka import DeliveryGuarantee, KafkaSink, KafkaSource
from headwater.testing import STEPS, JobCrashed, in_process
from headwater.testing.kafka import Api, KafkaBroker
from tests.unit.connectors.kafka import clients
from tests.waiting import wait_until

NO_EVENT_TIME = WatermarkStrategy.no_watermarks()
COUNT = 120


def expected() -> list[str]:
    return sorted(f"k{i % 7} {i // 7 + 1}" for i in range(COUNT))


class Counting:
    """Counts per key: wrong if a record is lost or comes twice, anywhere."""

    def __init__(self, source: KafkaSource, sink: KafkaSink) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        stream = env.from_source(source, NO_EVENT_TIME, "kafka")
        counted = stream.map(lambda text: (f"k{int(text) % 7}", 1)).key_by(lambda pair: pair[0])
        counted.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(sink)
        self.env = env

    def run(self) -> None:
        self.env.execute("counting")


def count(broker: KafkaBroker, guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE) -> None:
    servers = broker.bootstrap_servers
    Counting(clients.source(servers).build(), clients.sink(servers, guarantee)).run()


@pytest.fixture
def filled(broker: KafkaBroker) -> Iterator[KafkaBroker]:
    clients.produce(broker.bootstrap_servers, "in", range(COUNT))
    yield broker


def in_order_per_key(broker: KafkaBroker) -> None:
    last: dict[str, int] = {}
    for record in clients.read_all(broker.bootstrap_servers, "out"):
        assert record.value is not None
        key, number = record.value.decode().split()
        assert int(number) == last.get(key, 0) + 1, f"{record} after {last.get(key)}"
        last[key] = int(number)


@pytest.mark.parametrize("guarantee", DeliveryGuarantee)
def test_a_job_from_kafka_to_kafka(filled: KafkaBroker, guarantee: DeliveryGuarantee) -> None:
    with in_process(epoch_records=20):
        count(filled, guarantee)
    assert clients.values(filled.bootstrap_servers, "out") == expected()
    in_order_per_key(filled)
    assert filled.open_transactions() == []


@pytest.mark.parametrize("at", STEPS)
def test_exactly_once_across_a_kill_at_each_step(filled: KafkaBroker, at: str) -> None:
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=2, at=at)
        with pytest.raises(JobCrashed):
            count(filled)
        count(filled)
    assert clients.values(filled.bootstrap_servers, "out") == expected()
    in_order_per_key(filled)


def test_nothing_is_visible_before_the_checkpoint_is_durable(filled: KafkaBroker) -> None:
    seen: list[Any] = []
    with in_process(epoch_records=20) as here:
        here.call(
            lambda _: seen.append(clients.read_all(filled.bootstrap_servers, "out", "read_uncommitted")),
            epoch=0,
            at="acked",
        )
        count(filled)
    assert seen == [[]]


@pytest.mark.parametrize("api", [Api.END_TXN, Api.TXN_OFFSET_COMMIT, Api.ADD_PARTITIONS_TO_TXN, Api.PRODUCE])
@pytest.mark.parametrize("reply", [True, False], ids=["reply lost", "request lost"])
def test_lost_messages_between_client_and_broker(filled: KafkaBroker, api: Api, reply: bool) -> None:
    def lose(_: Any) -> None:
        (filled.lose_replies if reply else filled.lose_requests)(api)

    with in_process(epoch_records=20) as here:
        here.call(lose, epoch=2)
        count(filled)
    assert clients.values(filled.bootstrap_servers, "out") == expected()
    in_order_per_key(filled)


def test_at_least_once_repeats_but_loses_nothing(filled: KafkaBroker) -> None:
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=2, at="acked")
        with pytest.raises(JobCrashed):
            count(filled, DeliveryGuarantee.AT_LEAST_ONCE)
        count(filled, DeliveryGuarantee.AT_LEAST_ONCE)
    written = clients.values(filled.bootstrap_servers, "out")
    assert set(written) == set(expected()) and len(written) > COUNT


def test_output_files_are_gone_when_the_job_has_ended(filled: KafkaBroker, tmp_path: Any) -> None:
    with in_process(tmp_path / "checkpoints", epoch_records=20) as here:
        here.crash_job(epoch=2, at="acked")
        with pytest.raises(JobCrashed):
            count(filled)
        assert len(list((tmp_path / "checkpoints" / "output").iterdir())) > 1
        count(filled)
    left = [path.name.partition("-")[2] for path in (tmp_path / "checkpoints" / "output").iterdir()]
    assert len(left) == 1 and left[0].startswith("marker-")


def test_offsets_of_the_group_follow_the_checkpoints(filled: KafkaBroker) -> None:
    servers = filled.bootstrap_servers
    source = clients.source(servers).set_group_id("watched").build()
    seen: list[dict[Any, int]] = []
    with in_process(epoch_records=20) as here:
        here.call(lambda _: seen.append(filled.committed("watched")), epoch=3)
        Counting(source, clients.sink(servers)).run()
    assert sum(seen[0].values()) == 60
    assert filled.committed("watched") == {("in", 0): 60, ("in", 1): 60}


def test_a_restart_after_the_end_writes_nothing_again(filled: KafkaBroker, tmp_path: Any) -> None:
    for _ in range(2):
        with in_process(tmp_path / "c", epoch_records=50):
            count(filled)
    assert clients.values(filled.bootstrap_servers, "out") == expected()


def test_a_mark_that_is_gone_stops_a_commit_that_may_be_a_second_one(filled: KafkaBroker, tmp_path: Any) -> None:
    with in_process(tmp_path / "c", epoch_records=20) as here:
        here.crash_job(epoch=3, at="sink-committed")
        with pytest.raises(JobCrashed):
            count(filled)
        (group,) = (name for name in filled.groups() if name.startswith("headwater-sink-"))
        before = clients.read_all(filled.bootstrap_servers, "out")
        filled.forget_group(group)
        with pytest.raises(Exception, match=f"{group}.*nobody knows whether the output of epoch 3"):
            count(filled)
        assert clients.read_all(filled.bootstrap_servers, "out") == before


def test_a_second_driver_that_takes_over_fences_the_first(filled: KafkaBroker) -> None:
    from confluent_kafka import KafkaException, Producer

    zombies: list[Any] = []

    def leave_zombie(_: Any) -> None:
        (name,) = filled.transactional_ids()
        zombie = Producer(
            {"bootstrap.servers": filled.bootstrap_servers, "transactional.id": name},
            logger=logging.getLogger("zombie"),
        )
        zombie.init_transactions(30)
        zombie.begin_transaction()
        zombie.produce("out", b"k0 666", partition=0)
        zombie.flush(30)
        zombies.append(zombie)

    with in_process(epoch_records=20) as here:
        here.call(leave_zombie, epoch=2)
        count(filled)
    with pytest.raises(KafkaException):
        zombies[0].commit_transaction(30)
    assert clients.values(filled.bootstrap_servers, "out") == expected()


def test_timestamps_of_messages_are_event_time_and_are_written(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    clients.produce(servers, "in", ["a"], timestamp=5000)
    clients.produce(servers, "in", ["b"], timestamp=9000)
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(clients.source(servers).build(), WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    stream.map(str.upper, Types.STRING()).sink_to(clients.sink(servers))
    with in_process():
        env.execute("stamps")
    assert sorted((record.value, record.timestamp) for record in clients.read_all(servers, "out")) == [
        (b"A", 5000),
        (b"B", 9000),
    ]


def test_a_job_that_starts_from_the_checkpoint_of_another_one_commits_its_output_once(
    filled: KafkaBroker, tmp_path: Any
) -> None:
    """Whether the first driver died before or after the commit; its directory is not touched again."""
    servers = filled.bootstrap_servers
    for number, at in enumerate(("manifest-written", "sink-committed")):
        filled.create_topic(f"out-{number}", 3)
        with in_process(tmp_path / f"first-{number}", epoch_records=20) as here:
            here.crash_job(epoch=2, at=at)
            with pytest.raises(JobCrashed):
                Counting(clients.source(servers).build(), clients.sink(servers, topic=f"out-{number}")).run()
        (checkpoint,) = (tmp_path / f"first-{number}" / "manifests").glob("*2.manifest")
        job = Counting(clients.source(servers).build(), clients.sink(servers, topic=f"out-{number}"))
        job.env.configure(Configuration.from_dict({"execution.state-recovery.path": str(checkpoint)}))
        with in_process(tmp_path / f"second-{number}", epoch_records=20):
            job.run()
        assert clients.values(servers, f"out-{number}") == expected()


def test_a_job_whose_checkpoints_were_deleted_begins_anew_and_nothing_is_swallowed(
    filled: KafkaBroker, tmp_path: Any
) -> None:
    """It has the same id, and counts its epochs from the beginning: an old mark must not count for it."""
    servers = filled.bootstrap_servers
    for _ in range(2):
        source = clients.source(servers)
        source._settings.stopping, source._settings.bounded = None, False
        job = Counting(source.build(), clients.sink(servers))
        job.env.configure(
            Configuration.from_dict(
                {"execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION"}
            )
        )
        with in_process(tmp_path / "c", epoch_records=20):
            before = len(clients.read_all(servers, "out"))
            client = job.env.execute_async("counting")
            wait_until(lambda n=before: len(clients.read_all(servers, "out")) == n + COUNT, "the output", poll_s=0.1)  # type: ignore[misc]
            client.cancel().result()
    assert clients.values(servers, "out") == sorted(expected() * 2)


def test_checkpoints_that_span_epochs_are_committed_once_from_the_first_one_on(filled: KafkaBroker) -> None:
    with in_process(epoch_records=10, checkpoint_epochs=4) as here:
        here.crash_job(epoch=3, at="manifest-written")
        with pytest.raises(JobCrashed):
            count(filled)
        count(filled)
    assert clients.values(filled.bootstrap_servers, "out") == expected()
    in_order_per_key(filled)
