"""Kinesis, with moto's server over HTTP."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.common import SimpleStringSchema
from headwater.common.connector import Source, WriterContext
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError, SerializationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.kinesis import (
    FlinkKinesisConsumer,
    KinesisDeserializationSchema,
    KinesisFirehoseSink,
    KinesisRecord,
    KinesisStreamsSink,
    KinesisStreamsSource,
    PartitionKeyGenerator,
)
from headwater.datastream.connectors.kinesis import reader as reader_module
from headwater.datastream.connectors.kinesis import sink as sink_module
from headwater.testing import SOURCE_CHECKS, STEPS, CollectingSink, SourceCase, assert_same_records, in_process
from tests.unit.connectors.brokers.programs import (
    NO_EVENT_TIME,
    crashed_on_the_way_to,
    crashed_while_reading,
    run_once,
    to_sink,
)
from tests.unit.connectors.kinesis.server import KinesisServer, KinesisStream, kinesis_server, refuses
from tests.waiting import wait_until

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def server() -> Iterator[KinesisServer]:
    with kinesis_server() as running:
        yield running


@pytest.fixture
def stream(server: KinesisServer) -> KinesisStream:
    return KinesisStream(server, shards=2)


def source_of(stream: KinesisStream, position: str = "TRIM_HORIZON", timestamp: Any = None) -> Any:
    builder = KinesisStreamsSource.builder().set_streams(stream.name)
    builder.set_kinesis_client_properties(stream.server.properties | {"flink.shard.discovery.intervalmillis": "1"})
    return builder.set_initial_position(position, timestamp).set_value_only_deserializer(SimpleStringSchema())


def sink_of(stream: KinesisStream) -> Any:
    builder = KinesisStreamsSink.builder().set_stream_name(stream.name)
    builder.set_kinesis_client_properties(stream.server.properties)
    return builder.set_serialization_schema(SimpleStringSchema())


def texts(start: int, stop: int) -> list[str]:
    return [str(number) for number in range(start, stop)]


def read_on(source: Source, position: Any = None, number: int = 0, known: frozenset[str] = frozenset()) -> Any:
    """All that a new reader of a split has now, and its position."""
    reader = source.open_reader(source.discover_splits(2, known)[number], position)
    found: list[Any] = []
    while batch := reader.read_batch(3):
        found += batch
    return found, reader.position(), batch is None


class TestSource:
    @pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
    def test_contract(self, check: Callable[[SourceCase], None], server: KinesisServer) -> None:
        stream = KinesisStream(server)
        stream.put(list(range(12)))
        check(SourceCase(source_of(stream).set_bounded().build, texts(0, 12), splits=1))

    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step_of_a_stream_that_was_resharded(self, step: str, stream: KinesisStream) -> None:
        stream.put(list(range(20)))
        stream.split(0)
        stream.put(list(range(20, 40)))
        stream.merge(2, 3)
        stream.put(list(range(40, 60)))
        results = crashed_while_reading(source_of(stream).set_bounded().build, step)
        assert_same_records(results, texts(0, 60))

    def test_children_are_read_after_their_parents(self, stream: KinesisStream) -> None:
        """A key's records move from shard to shard while the job runs, and stay in order."""
        results = CollectingSink()

        def reshard_and_put(number: int) -> None:
            for key in range(8):
                stream.put([f"{key} {number * 10 + each}" for each in range(10)], f"key-{key}")

        reshard_and_put(0)
        with in_process(epoch_records=7):
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(2)
            env.from_source(source_of(stream).build(), NO_EVENT_TIME, "s").sink_to(results)
            job = env.execute_async()
            for number, change in enumerate((lambda: stream.split(0), lambda: stream.merge(2, 3)), 1):
                change()  # what is in the parents is not yet read
                reshard_and_put(number)
            wait_until(lambda: len(results.results()) == 240)
            job.cancel().result()
        found = defaultdict(list)
        for key, number in map(str.split, results.results()):
            found[key].append(int(number))
        assert dict(found) == {str(key): list(range(30)) for key in range(8)}

    def test_where_to_start(self, stream: KinesisStream) -> None:
        stream.put([0, 1], "a")
        time.sleep(0.01)  # timestamps of moto are those of the clock
        between = time.time()
        stream.put([2, 3], "a")

        def read(position: str, timestamp: Any = None) -> list[str]:
            source = source_of(stream, position, timestamp).set_bounded().build()
            return [each for number in range(2) for each in read_on(source, number=number)[0]]

        assert read("TRIM_HORIZON") == texts(0, 4)
        assert read("AT_TIMESTAMP", between) == texts(2, 4)
        assert read("AT_TIMESTAMP", "2020-01-01T00:00:00") == texts(0, 4)
        assert read("LATEST") == []

    def test_latest_is_when_the_job_first_started(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)
        stream.put([0, 1])
        source = source_of(stream, "LATEST").build()
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(split, None)
        assert reader.read_batch(10) == []
        stream.put([2, 3])  # while the job is down
        assert source.open_reader(split, reader.position()).read_batch(10) == ["2", "3"]
        assert source.open_reader(split, None).read_batch(10) == ["2", "3"]

    def test_waiting_and_gauges(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)
        source = source_of(stream).build()
        reader = source.open_reader(*source.discover_splits(1, frozenset()), None)
        waiting, waker = os.pipe()
        try:
            assert not reader.wait_readable(time.monotonic() + 0.05, waiting)
            stream.put([1, 2, 3])
            assert reader.wait_readable(time.monotonic() + 20, waiting)
            assert reader.read_batch(1) == ["1"] and reader.position().sequence == "1"
            assert reader.read_batch(9) == ["2", "3"] and reader.position().sequence == "3"
            assert reader.gauges()["millisBehindLatest"] == 0 and reader.gauges()["currentFetchEventTimeLag"] >= 0
            os.write(waker, b"x")
            assert not reader.wait_readable(time.monotonic() + 20, waiting)
        finally:
            os.close(waiting)
            os.close(waker)

    def test_whole_records_and_rejects(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)

        class Keyed(KinesisDeserializationSchema):
            def deserialize(self, record: KinesisRecord) -> Any:
                return (record.partition_key, int(record.data), record.shard_id[-1])

        stream.put([7, "no number", 8], "a")
        builder = source_of(stream).set_bounded().set_deserializer(Keyed())
        results, letters = CollectingSink(), CollectingSink()
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            env.from_source(builder.build(), NO_EVENT_TIME, "s").with_dead_letters(letters).sink_to(results)
            env.execute()
        assert results.results() == [("a", 7, "0"), ("a", 8, "0")]
        (letter,) = letters.results()
        assert letter.where == f"record 2 of shardId-000000000000 of stream '{stream.name}'"
        source = builder.set_deserializer(lambda record: record).build()
        (again,) = source.read_again(letter.as_rejected())
        assert again[:3] == (b"no number", "a", "2")

    def test_aggregated_records_are_not_taken_for_others(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)
        record = {"Data": b"\xf3\x89\x9a\xc2rest", "PartitionKey": "a"}
        server.client.put_records(StreamName=stream.name, Records=[record])
        with pytest.raises(HeadwaterError, match="aggregated by the Kinesis Producer Library"):
            run_once(source_of(stream).set_bounded().build())


class TestTrimmed:
    """Kinesis goes on with the oldest record there is, and says nothing."""

    def test_a_job_that_was_down_for_too_long(self, server: KinesisServer, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = KinesisStream(server)
        stream.put([0, 1])
        source = source_of(stream).build()
        found, position, _ = read_on(source)
        assert found == ["0", "1"]
        stream.put([2, 3])
        del stream.shard(0).records[1], stream.shard(0).records[2], stream.shard(0).records[3]
        later = reader_module.now_ms() + 25 * HOUR_MS
        monkeypatch.setattr(reader_module, "now_ms", lambda: later)
        with pytest.raises(HeadwaterError, match=r"behind record 2 of shardId-0+ .* may be trimmed.*for 24 hours"):
            read_on(source, position)
        server.client.increase_stream_retention_period(StreamName=stream.name, RetentionPeriodHours=48)
        assert read_on(source, position)[0] == ["3"]

    def test_a_quiet_shard_is_no_loss(self, server: KinesisServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was read last is long gone, but the job has looked since."""
        stream = KinesisStream(server)
        stream.put([0])
        source = source_of(stream).build()
        position = read_on(source)[1]
        now = reader_module.now_ms()
        for hours in (20, 40, 60):
            monkeypatch.setattr(reader_module, "now_ms", lambda: now + hours * HOUR_MS)  # noqa: B023
            found, position, _ = read_on(source, position)
            assert found == []

    def test_the_oldest_records_may_go_while_they_are_read_at_first(
        self, server: KinesisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = KinesisStream(server)
        stream.put(list(range(6)))
        edge = reader_module.now_ms() + 24 * HOUR_MS
        monkeypatch.setattr(reader_module, "now_ms", lambda: edge + 1000)
        source = source_of(stream).build()
        reader = source.open_reader(*source.discover_splits(1, frozenset()), None)
        assert reader.read_batch(2) == ["0", "1"] and not reader.position().whole
        assert source.open_reader(*source.discover_splits(1, frozenset()), reader.position()).read_batch(2)

    def test_children_whose_parents_are_gone(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)
        stream.put([0])
        source = source_of(stream).build()
        known = frozenset([source.discover_splits(1, frozenset())[0].split_id])
        stream.split(0)
        children = source.discover_splits(1, known)
        assert [split.payload.whole for split in children] == [True, True]
        del stream.inside.shards["shardId-000000000000"]  # a day later
        with pytest.raises(HeadwaterError, match=r"shardId-0+1 of stream .* is new to the job, and the shards before"):
            source.discover_splits(1, known)
        with pytest.raises(HeadwaterError, match=r"at its start of shardId-0+1 .* may be trimmed"):
            source.open_reader(children[0], None).read_batch(1)

    def test_a_shard_that_is_gone(self, server: KinesisServer) -> None:
        stream = KinesisStream(server)
        source = source_of(stream).build()
        (split,) = source.discover_splits(1, frozenset())
        del stream.inside.shards["shardId-000000000000"]
        with pytest.raises(HeadwaterError, match=r"may be trimmed: .*does not exist"):
            source.open_reader(split, None).read_batch(1)


class TestSink:
    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step_loses_nothing(self, step: str, stream: KinesisStream) -> None:
        expected = crashed_on_the_way_to(sink_of(stream).build, 50, step)
        assert set(stream.read()) == set(expected)

    def test_what_is_refused_is_sent_again_in_the_order_of_its_key(
        self, server: KinesisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = KinesisStream(server)
        monkeypatch.setattr(sink_module.time, "sleep", lambda seconds: None)
        keys = PartitionKeyGenerator.of(lambda text: text[0])
        refuses[:] = [
            lambda record: record["Data"] in ("YTE=", "YjI="),  # a1, b2
            lambda record: record["Data"] == "YTI=",  # a2
        ]
        self.write(sink_of(stream).set_partition_key_generator(keys).build(), ["a1", "b1", "a2", "b2", "c1", "b3"])
        assert stream.read() == ["b1", "a2", "c1", "b3", "a1", "b2", "b3", "a2"]
        refuses[:] = [lambda record: True] * (sink_module.ATTEMPTS + 1)
        with pytest.raises(ExternalSystemError, match=r"1 of 1 records were not taken: Provisioned.*tried 10 times"):
            self.write(sink_of(stream).build(), ["x"])
        refuses[:] = [lambda record: True]
        with pytest.raises(HeadwaterError, match="set_fail_on_error"):
            self.write(sink_of(stream).set_fail_on_error(True).build(), ["x"])

    def test_batches_are_as_small_as_asked_for(self, stream: KinesisStream, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes = []
        real = KinesisStreamsSink.put
        monkeypatch.setattr(
            KinesisStreamsSink, "put", lambda sink, client, batch: sizes.append(len(batch)) or real(sink, client, batch)
        )
        self.write(sink_of(stream).set_max_batch_size(4).build(), texts(0, 10))
        assert sizes == [4, 4, 2]
        fixed = sink_of(stream).set_partition_key_generator(PartitionKeyGenerator.fixed())
        self.write(fixed.set_max_batch_size_in_bytes(9).build(), ["abc", "def", "ghi"])
        assert sizes == [4, 4, 2, 2, 1]
        with pytest.raises(SerializationError, match=r"has 9 bytes; expected at most 8"):
            self.write(fixed.set_max_record_size_in_bytes(8).build(), ["12345678"])

    def test_firehose(self, server: KinesisServer) -> None:
        s3, firehose = server.client_of("s3"), server.client_of("firehose")
        s3.create_bucket(Bucket="delivered")
        target = {"RoleARN": "arn:aws:iam::123456789012:role/x", "BucketARN": "arn:aws:s3:::delivered"}
        firehose.create_delivery_stream(DeliveryStreamName="d", ExtendedS3DestinationConfiguration=target)
        builder = KinesisFirehoseSink.builder().set_delivery_stream_name("d")
        builder.set_firehose_client_properties(server.properties).set_serialization_schema(SimpleStringSchema())
        with in_process(epoch_records=10):
            to_sink(builder.build, 20, parallelism=1)
        parts = [each["Key"] for each in s3.list_objects_v2(Bucket="delivered")["Contents"]]
        found = "".join(s3.get_object(Bucket="delivered", Key=key)["Body"].read().decode() for key in parts)
        assert sorted(found) == sorted("".join(texts(0, 20)))

    @staticmethod
    def write(sink: Any, values: list[str]) -> None:
        writer = sink.create_writer(WriterContext("job", "sink", 0, 1, "a0", 0))
        writer.write_batch(values, None)
        assert writer.prepare_commit() == []


class TestBadInput:
    def test_no_server_no_stream(self, server: KinesisServer, stream: KinesisStream) -> None:
        missing = KinesisStreamsSink.builder().set_stream_name("none").set_serialization_schema(SimpleStringSchema())
        with pytest.raises(HeadwaterError, match=r"KinesisStreamsSink \(none\): cannot find the stream: .*none"):
            run_once(missing.set_kinesis_client_properties(server.properties).build())
        stream.name = "gone"
        with pytest.raises(HeadwaterError, match=r"cannot list the shards of stream 'gone'"):
            run_once(source_of(stream).build())
        away = server.properties | {"aws.endpoint": "http://127.0.0.1:1"}
        with pytest.raises(HeadwaterError, match="Could not connect to the endpoint"):
            run_once(FlinkKinesisConsumer("s", SimpleStringSchema(), away))

    def test_settings(self, server: KinesisServer) -> None:
        def consumer(**properties: str) -> Any:
            return FlinkKinesisConsumer(["s"], SimpleStringSchema(), server.properties | properties)

        assert "nothing" not in repr(consumer()) and "aws.region" in repr(consumer())
        for bad in (
            lambda: FlinkKinesisConsumer("s", SimpleStringSchema(), {}),
            lambda: FlinkKinesisConsumer([], SimpleStringSchema(), server.properties),
            lambda: FlinkKinesisConsumer("s", str, server.properties),
            lambda: consumer(**{"flink.stream.initpos": "OLDEST"}),
            lambda: consumer(**{"flink.stream.initpos": "AT_TIMESTAMP"}),
            lambda: consumer(**{"flink.shard.discovery.intervalmillis": "soon"}),
            lambda: consumer(**{"aws.credentials.provider": "ASSUME_ROLE"}),
            lambda: KinesisStreamsSource.builder().set_streams("s").build(),
            lambda: KinesisStreamsSink.builder().set_stream_name("s").build(),
            lambda: KinesisStreamsSink.builder().set_max_batch_size(501),
            lambda: KinesisStreamsSink.builder().set_serialization_schema(str),  # type: ignore[arg-type]
            lambda: KinesisStreamsSink.builder().set_partition_key_generator(str),  # type: ignore[arg-type]
            lambda: PartitionKeyGenerator.of(lambda: ""),  # type: ignore[arg-type,misc]
        ):
            with pytest.raises(ConfigurationError):
                bad()
