"""The source: offsets, bounds, discovery, whole messages, rejected ones, figures, and errors that say where."""

from __future__ import annotations

import os
import pickle
import time
from typing import Any

import pytest

from headwater.common import SimpleStringSchema
from headwater.common.connector import Split, SplitReader, TimedBatch
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka.clients import produce, source

EARLIEST, LATEST = KafkaOffsetsInitializer.earliest(), KafkaOffsetsInitializer.latest()


def ranges(source: KafkaSource, known: frozenset[str] = frozenset()) -> dict[str, tuple[int, int | None]]:
    """{split: (first offset, last)}"""
    return {each.split_id: (each.payload.start, each.payload.stop) for each in source.discover_splits(1, known)}


def opened(source: KafkaSource, split: Split, position: int | None = None) -> SplitReader:
    """A reader as a task makes it: from a source that was pickled."""
    there: KafkaSource = pickle.loads(pickle.dumps(source))
    return there.open_reader(split, position)


def read(reader: SplitReader, most: int = 100) -> list[Any]:
    """All up to the end, or up to what is there now."""
    found: list[Any] = []
    while batch := reader.read_batch(most):
        found += batch
    return found


def unbounded(servers: str, *topics: str) -> KafkaSourceBuilder:
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(*(topics or ("in",)))
    return builder.set_value_only_deserializer(SimpleStringSchema())


class TestOffsets:
    @pytest.fixture(autouse=True)
    def filled(self, broker: KafkaBroker) -> None:
        for stamp in (1000, 2000, 3000):
            produce(broker.bootstrap_servers, "in", ["a", "b"], timestamp=stamp)
        self.servers = broker.bootstrap_servers

    @pytest.mark.parametrize(
        ("initializer", "starts"),
        [
            (EARLIEST, (0, 0)),
            (LATEST, (3, 3)),
            (KafkaOffsetsInitializer.timestamp(1500), (1, 1)),
            (KafkaOffsetsInitializer.timestamp(9000), (3, 3)),
            (KafkaOffsetsInitializer.offsets({KafkaTopicPartition("in", 1): 2}), (0, 2)),
            (
                KafkaOffsetsInitializer.offsets({KafkaTopicPartition("in", 1): 2}, KafkaOffsetResetStrategy.LATEST),
                (3, 2),
            ),
            (KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST), (3, 3)),
        ],
    )
    def test_where_reading_begins(self, initializer: KafkaOffsetsInitializer, starts: tuple[int, int]) -> None:
        source = unbounded(self.servers).set_starting_offsets(initializer).set_group_id("new").build()
        assert ranges(source) == {"in-0": (starts[0], None), "in-1": (starts[1], None)}

    def test_a_group_goes_on_where_it_stands(self) -> None:
        source = unbounded(self.servers).set_group_id("g").build()
        source.checkpoint_committed({"in-0": 2, "in-1": 1})
        source.close()
        again = unbounded(self.servers).set_group_id("g")
        assert ranges(again.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()) == {
            "in-0": (2, None),
            "in-1": (1, None),
        }

    def test_a_group_without_offsets_is_an_error_that_says_so(self) -> None:
        builder = unbounded(self.servers).set_group_id("new")
        source = builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
        with pytest.raises(HeadwaterError, match="no committed offset for partition 0 of topic 'in'"):
            source.discover_splits(1, frozenset())

    def test_a_bounded_source_ends_where_the_topic_ended_when_it_looked(self) -> None:
        bounded = source(self.servers).build()
        assert ranges(bounded) == {"in-0": (0, 3), "in-1": (0, 3)}
        produce(self.servers, "in", ["late", "late"])
        (split, _) = bounded.discover_splits(1, frozenset())
        split = Split(split.split_id, type(split.payload)("in", 0, 0, 3))
        reader = opened(bounded, split)
        assert read(reader) == ["a", "a", "a"]
        assert reader.read_batch(1) is None and reader.position() == 3
        reader.close()

    def test_the_older_consumer_begins_at_the_group_or_as_auto_offset_reset_says(self) -> None:
        properties = {"bootstrap.servers": self.servers, "group.id": "new", "auto.offset.reset": "earliest"}
        consumer = FlinkKafkaConsumer("in", SimpleStringSchema(), properties)
        assert ranges(consumer) == {"in-0": (0, None), "in-1": (0, None)}
        assert ranges(consumer.set_start_from_latest()) == {"in-0": (3, None), "in-1": (3, None)}


def test_partitions_that_appear_while_the_job_runs_are_read_from_their_beginning(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topic_pattern("i.*")
    source = builder.set_value_only_deserializer(SimpleStringSchema()).set_starting_offsets(LATEST).build()
    assert source.discovery_interval_ms == 300_000
    produce(servers, "in", ["a", "b"])
    assert ranges(source) == {"in-0": (1, None), "in-1": (1, None)}
    broker.create_topic("in", 3)
    broker.create_topic("inner", 1)
    broker.create_topic("other", 1)
    produce(servers, "inner", ["c"], partitions=1)
    deadline = time.monotonic() + 30
    while len(found := ranges(source, frozenset({"in-0", "in-1"}))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == {"in-2": (0, None), "inner-0": (0, None)}


def test_discovery_survives_a_broker_that_is_down(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.datastream.connectors.kafka.client.CONNECT_SECONDS", 0.5)
    source = unbounded(broker.bootstrap_servers).build()
    broker.stop()
    assert source.discover_splits(1, frozenset({"in-0"})) == []
    with pytest.raises(ExternalSystemError, match=broker.bootstrap_servers):
        source.discover_splits(1, frozenset())


def test_whole_messages_have_all_that_kafka_knows(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    produce(servers, "in", [b"v"], key=b"k", headers=[("trace", b"7"), ("none", None)], timestamp=5000)
    source = unbounded(servers).set_deserializer(KafkaRecordDeserializationSchema.records()).build()
    reader = opened(source, source.discover_splits(1, frozenset())[0])
    batch = reader.read_batch(10)
    assert isinstance(batch, TimedBatch) and batch.timestamps == [5000]
    assert tuple(batch[0]) == ("in", 0, 0, 5000, b"k", b"v", (("trace", b"7"), ("none", None)))
    reader.close()


def test_a_function_of_the_message_makes_the_record(broker: KafkaBroker) -> None:
    produce(broker.bootstrap_servers, "in", ["x", "y", "z", "w"])
    of = KafkaRecordDeserializationSchema.of(lambda record: (record.offset, record.value) if record.offset else None)
    source = unbounded(broker.bootstrap_servers).set_deserializer(of).build()
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    assert read(reader) == [(1, b"z")]
    assert reader.counters() == {"kafkaMessagesWithoutRecord": 1}
    reader.close()


def test_a_message_that_cannot_be_read_is_rejected_with_its_place(broker: KafkaBroker) -> None:
    produce(broker.bootstrap_servers, "in", [b"ok", b"\xff\xfe", b"fine"], partitions=1, key=b"k")
    source = unbounded(broker.bootstrap_servers).build()
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    assert read(reader) == ["ok", "fine"]
    (rejected,) = reader.rejected()
    assert (rejected.raw, rejected.split_id, rejected.position) == (b"\xff\xfe", "in-0", 1)
    assert rejected.where == "offset 1 of partition 0 of topic 'in'" and "utf-8" in rejected.error
    assert rejected.attributes["key"] == b"k"
    assert reader.rejected() == []
    reader.close()


def test_lag_end_and_age_are_known_per_partition(broker: KafkaBroker) -> None:
    now_ms = int(time.time() * 1000)
    produce(broker.bootstrap_servers, "in", range(10), partitions=1, timestamp=now_ms - 60_000)
    source = unbounded(broker.bootstrap_servers).build()
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    first = reader.read_batch(4)
    assert first is not None and 1 <= len(first) <= 4
    gauges = reader.gauges()
    assert gauges["pendingRecords"] == 10 - len(first) and gauges["endOffset"] == 10
    assert gauges["currentOffset"] == len(first)
    assert gauges["currentFetchEventTimeLag"] >= 60_000 and gauges["oldestUnreadAge"] >= 60_000
    read(reader)
    assert reader.gauges()["pendingRecords"] == 0 and reader.gauges()["oldestUnreadAge"] == 0
    reader.close()


class TestLostOffsets:
    @pytest.mark.parametrize("position", [2, 900], ids=["deleted", "beyond the end"])
    def test_an_offset_that_is_not_there_is_an_error_and_never_skipped(
        self, broker: KafkaBroker, position: int
    ) -> None:
        produce(broker.bootstrap_servers, "in", range(10), partitions=1)
        source = unbounded(broker.bootstrap_servers).build()
        split = source.discover_splits(1, frozenset())[0]
        broker.delete_before("in", 0, 5)
        reader = source.open_reader(split, position)
        with pytest.raises(
            HeadwaterError,
            match=rf"offset {position} of partition 0 of topic 'in', which is not there .*offsets 5 to 9",
        ):
            read(reader)
        reader.close()


def test_a_reader_waits_until_there_is_input_or_somebody_needs_it(broker: KafkaBroker) -> None:
    source = unbounded(broker.bootstrap_servers).build()
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    wake, waker = os.pipe()
    assert reader.read_batch(5) == []
    assert not reader.wait_readable(time.monotonic() + 0.02, wake)
    produce(broker.bootstrap_servers, "in", ["now"], partitions=1)
    assert reader.wait_readable(time.monotonic() + 30, wake)
    assert reader.read_batch(5) == ["now"]
    os.write(waker, b".")
    assert not reader.wait_readable(time.monotonic() + 30, wake)
    reader.close()
    os.close(wake)
    os.close(waker)


def test_reading_goes_on_when_the_broker_comes_back(broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    produce(servers, "in", range(4), partitions=1)
    source = unbounded(servers).build()
    reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
    assert read(reader) == ["0", "1", "2", "3"]
    broker.stop()
    assert reader.read_batch(5) == []
    broker.start()
    produce(servers, "in", [4], partitions=1)
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        found = read(reader)
    assert found == ["4"]
    reader.close()


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (lambda b: b.set_property("no.such.property", "1"), "No such configuration property: .no.such.property"),
            (lambda b: b.set_property("sasl.password", "${env:NO_SUCH}"), r"sasl.password: \$\{env:NO_SUCH\}"),
            (lambda b: b.set_property("ssl.truststore.location", "/x.jks"), "Java key store"),
            (lambda b: b.set_property("sasl.jaas.config", "what"), "no username and password"),
        ],
    )
    def test_settings_that_kafka_does_not_know(self, broker: KafkaBroker, change: Any, text: str) -> None:
        source = change(unbounded(broker.bootstrap_servers)).build()
        with pytest.raises(ConfigurationError, match=text):
            source.discover_splits(1, frozenset())

    def test_a_missing_topic_and_a_missing_partition_are_named(self, broker: KafkaBroker) -> None:
        with pytest.raises(HeadwaterError, match="has no topic 'nowhere'; create it"):
            unbounded(broker.bootstrap_servers, "in", "nowhere").build().discover_splits(1, frozenset())
        builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers)
        builder.set_partitions({KafkaTopicPartition("in", 7)}).set_value_only_deserializer(SimpleStringSchema())
        with pytest.raises(HeadwaterError, match="has no partition in-7"):
            builder.build().discover_splits(1, frozenset())

    def test_a_wrong_host_is_an_error_that_names_it_and_hides_the_password(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("headwater.datastream.connectors.kafka.client.CONNECT_SECONDS", 2.0)
        builder = unbounded("127.0.0.1:1").set_property("security.protocol", "SASL_PLAINTEXT")
        builder.set_property("sasl.mechanism", "PLAIN").set_property(
            "sasl.jaas.config",
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="hush-hush";',
        )
        source = builder.build()
        with pytest.raises(ExternalSystemError) as caught:
            source.discover_splits(1, frozenset())
        assert "127.0.0.1:1" in str(caught.value) and "refused" in str(caught.value)
        assert "hush" not in str(caught.value) + repr(source) + repr(source.settings)

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: KafkaSource.builder().set_topics("a").set_topic_pattern("b"), "already reads a"),
            (lambda: KafkaSource.builder().set_topic_pattern("("), "no regular expression"),
            (lambda: KafkaSource.builder().build(), "set_bootstrap_servers"),
            (lambda: KafkaSource.builder().set_bootstrap_servers("h:1").build(), "nothing to read"),
            (lambda: KafkaSource.builder().set_bootstrap_servers("h:1").set_topics("a").build(), "no schema"),
            (lambda: KafkaSource.builder().set_starting_offsets("earliest"), "KafkaOffsetsInitializer"),  # type: ignore[arg-type]
            (lambda: KafkaSource.builder().set_value_only_deserializer(None), "DeserializationSchema"),  # type: ignore[arg-type]
            (lambda: KafkaOffsetsInitializer.offsets({("a", 1): 3}), "KafkaTopicPartition"),  # type: ignore[dict-item]
            (lambda: FlinkKafkaConsumer("a", SimpleStringSchema(), {}), "bootstrap.servers"),
        ],
    )
    def test_what_cannot_work_is_refused_when_it_is_built(self, make: Any, text: str) -> None:
        with pytest.raises(ConfigurationError, match=text):
            make()

    def test_without_the_client_library_the_error_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "confluent_kafka", None)
        with pytest.raises(ConfigurationError, match=r"pip install 'headwater\[kafka\]'"):
            unbounded("h:1").build()
