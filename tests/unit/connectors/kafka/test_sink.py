"""The sink: what becomes of records, what is refused, and commits that meet a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from headwater.common import SimpleStringSchema
from headwater.common.connector import CommitterContext, WriterContext
from headwater.common.errors import CheckpointError, ConfigurationError, HeadwaterError, SerializationError
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.kafka import (
    DeliveryGuarantee,
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    Semantic,
    existing_topics,
)
from headwater.datastream.connectors.kafka import committer as committing
from headwater.datastream.connectors.kafka.messages import Messages
from headwater.datastream.connectors.spool import read_spool
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka.clients import read_all, sink, values


class Files:
    """Checkpoint storage in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def write(self, name: str) -> Any:
        import contextlib
        import io

        @contextlib.contextmanager
        def writing() -> Any:
            file = io.BytesIO()
            yield file
            self.content[name] = file.getvalue()

        return writing()

    def open(self, name: str) -> Any:
        import io

        if name not in self.content:
            raise FileNotFoundError(name)
        return io.BytesIO(self.content[name])

    def delete(self, name: str) -> None:
        self.content.pop(name, None)

    def names(self) -> list[str]:
        return list(self.content)


def context(files: Files | None, epoch: int = 1, partition: int = 0) -> WriterContext:
    return WriterContext("job", "sink", partition, 1, f"a{epoch}", epoch, "uid", files)


def written(sink: KafkaSink, records: list[Any], files: Files | None, epoch: int = 1) -> list[Any]:
    writer = sink.create_writer(context(files, epoch))
    writer.write_batch(records, None)
    committables = writer.prepare_commit()
    writer.close()
    return committables


def opened(sink: KafkaSink, files: Files | None, resumed_epoch: int = -1) -> Any:
    committer = sink.create_committer()
    committer.open(CommitterContext("job", "sink", "uid", files, resumed_epoch))
    return committer


def test_topic_key_headers_and_partition_are_what_the_schema_says(broker: KafkaBroker) -> None:
    broker.create_topic("even", 2)
    broker.create_topic("odd", 2)
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda text: "odd" if int(text) % 2 else "even")
        .set_key_serialization_schema(SimpleStringSchema())
        .set_value_serialization_schema(SimpleStringSchema())
        .set_headers_provider(lambda text: [("n", text.encode())])
        .set_partitioner(lambda text: 1)
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers).set_record_serializer(schema)
    made = builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build()
    files = Files()
    committer = opened(made, files)
    committer.commit(written(made, ["1", "2", "3"], files))
    committer.close()
    found = [record for topic in ("even", "odd") for record in read_all(broker.bootstrap_servers, topic)]
    assert [(each.topic, each.partition, each.key, each.value, each.headers) for each in found] == [
        ("even", 1, b"2", b"2", (("n", b"2"),)),
        ("odd", 1, b"1", b"1", (("n", b"1"),)),
        ("odd", 1, b"3", b"3", (("n", b"3"),)),
    ]


@pytest.mark.parametrize("with_files", [True, False], ids=["in storage", "in the manifest"])
def test_a_commit_that_is_repeated_by_another_driver_writes_nothing_again(
    broker: KafkaBroker, with_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the output takes several transactions."""
    monkeypatch.setattr(committing, "PART_BYTES", 60)
    made, files = sink(broker.bootstrap_servers), Files() if with_files else None
    parts = [part for epoch in (1, 2, 3) for part in written(made, [f"e{epoch} {i}" for i in range(3)], files, epoch)]
    kept = dict(files.content) if files is not None else {}
    assert len(committing.parts_of(parts)) == 3
    for _ in range(3):
        committer = opened(made, files)
        committer.commit(parts)
        committer.close()
        if files is not None:
            files.content |= kept
    assert values(broker.bootstrap_servers, "out") == sorted(f"e{e} {i}" for e in (1, 2, 3) for i in range(3))


def test_a_commit_that_failed_half_way_goes_on_where_it_stopped(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "PART_BYTES", 60)
    made, files = sink(broker.bootstrap_servers), Files()
    parts = [part for epoch in (1, 2, 3) for part in written(made, [f"e{epoch} 0"], files, epoch)]
    third = files.content.pop(parts[2].name)
    committer = opened(made, files)
    with pytest.raises(CheckpointError, match=r"output file e0+3-a3-p0-.* of epoch 3 is missing"):
        committer.commit(parts)
    assert values(broker.bootstrap_servers, "out") == ["e1 0", "e2 0"]
    files.content[parts[2].name] = third
    committer.commit(parts)
    committer.close()
    assert values(broker.bootstrap_servers, "out") == ["e1 0", "e2 0", "e3 0"]


@pytest.mark.parametrize("damage", [lambda c: c[:-5], lambda c: c[:30] + b"?" + c[31:], lambda c: b"x" + c[1:]])
def test_damaged_output_is_noticed_and_nothing_of_it_becomes_visible(broker: KafkaBroker, damage: Any) -> None:
    made, files = sink(broker.bootstrap_servers), Files()
    (part,) = written(made, ["a 1", "b 2"], files)
    files.content[part.name] = damage(files.content[part.name])
    with pytest.raises(CheckpointError, match="epoch 1 is damaged"):
        list(read_spool(part, files, Messages))
    committer = opened(made, files)
    with pytest.raises(CheckpointError):
        committer.commit([part])
    committer.close()
    assert values(broker.bootstrap_servers, "out") == []


def test_an_attempt_that_is_aborted_leaves_no_file(broker: KafkaBroker) -> None:
    made, files = sink(broker.bootstrap_servers), Files()
    writer = made.create_writer(context(files))
    writer.write_batch(["a 1"], None)
    writer.abort()
    writer.close()
    assert files.content == {}


def test_a_driver_that_wakes_up_in_the_middle_of_its_commit_cannot_write(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped between its messages and its mark; meanwhile another driver has committed that, and more."""
    made, files = sink(broker.bootstrap_servers), Files()
    first = written(made, ["a 1", "b 1"], files, epoch=1)
    second = written(made, ["a 2"], files, epoch=2)
    zombie, heir = opened(made, files), opened(made, files, resumed_epoch=1)
    kept = dict(files.content)
    send = committing.send

    def stopped(client: Any, messages: Any) -> None:
        send(client, messages)
        client.client.flush(30)
        monkeypatch.setattr(committing, "send", send)
        heir.commit(first)
        heir.commit(second)
        files.content |= kept

    monkeypatch.setattr(committing, "send", stopped)
    with pytest.raises(HeadwaterError, match="cannot commit output at Kafka"):
        zombie.commit(first)
    assert values(broker.bootstrap_servers, "out") == ["a 1", "a 2", "b 1"]
    zombie.commit(first)  # if it is not told that its job is another driver's, it sees the mark
    assert values(broker.bootstrap_servers, "out") == ["a 1", "a 2", "b 1"]
    zombie.close()
    heir.close()


class NotEncoded(SerializationSchema):
    """Forgets it, for one record."""

    def serialize(self, value: Any) -> Any:
        return value if value == "bad" else value.encode()


def choosing(broker: KafkaBroker, guarantee: DeliveryGuarantee, change: dict[str, Any]) -> KafkaSink:
    """A sink whose schema does what `change` says with the record 'bad', and something sensible with others."""

    def only_bad(function: Callable[[Any], Any], otherwise: Any) -> Callable[[Any], Any]:
        return lambda record: function(record) if record in ("a", "bad") else otherwise

    schema = KafkaRecordSerializationSchema.builder()
    schema.set_value_serialization_schema(change.get("value", SimpleStringSchema()))
    if "topic" in change:
        schema.set_topic_selector(only_bad(change["topic"], "out"))
    else:
        schema.set_topic("out")
    if "key" in change:
        schema.set_key_serialization_schema(change["key"])
    if "headers" in change:
        schema.set_headers_provider(only_bad(change["headers"], []))
    if "partition" in change:
        schema.set_partitioner(only_bad(change["partition"], 0))
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    return builder.set_record_serializer(schema.build()).set_delivery_guarantee(guarantee).build()


class TestBadInput:
    def test_a_message_that_is_too_large_fails_before_a_checkpoint_promises_it(self, broker: KafkaBroker) -> None:
        with pytest.raises(SerializationError, match=r"message of 2000001 bytes .*message.max.bytes .1000000.*'x x"):
            written(sink(broker.bootstrap_servers), ["x " + "x" * 1_999_998], Files())

    @pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
    def test_a_broker_that_takes_only_smaller_ones_is_named(
        self, broker: KafkaBroker, guarantee: DeliveryGuarantee
    ) -> None:
        broker.limit_messages(1000)
        made, files = sink(broker.bootstrap_servers, guarantee), Files()
        with pytest.raises(HeadwaterError, match=f"KafkaSink .out.*{broker.bootstrap_servers}.*(?i:too large)"):
            parts = written(made, ["x " + "x" * 5000], files)
            opened(made, files).commit(parts)

    @pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
    def test_a_topic_that_may_not_be_written_to(self, broker: KafkaBroker, guarantee: DeliveryGuarantee) -> None:
        broker.forbid_writes("out")
        made, files = sink(broker.bootstrap_servers, guarantee), Files()
        with pytest.raises(HeadwaterError, match=f"{broker.bootstrap_servers}.*(?i:authoriz)"):
            parts = written(made, ["x 1"], files)
            opened(made, files).commit(parts)

    def test_without_a_guarantee_what_is_lost_is_at_least_logged(
        self, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker.forbid_writes("out")
        writer = sink(broker.bootstrap_servers, DeliveryGuarantee.NONE).create_writer(context(None))
        writer.write_batch(["x 1"], None)
        writer.close()
        writer.prepare_commit()
        assert "1 messages could not be delivered to topic 'out'" in caplog.text and "lost" in caplog.text

    @pytest.mark.parametrize("guarantee", DeliveryGuarantee)
    def test_a_missing_topic_is_named_when_the_job_starts(
        self, broker: KafkaBroker, guarantee: DeliveryGuarantee
    ) -> None:
        with pytest.raises(HeadwaterError, match="has no topic 'nowhere'; create it"):
            opened(sink(broker.bootstrap_servers, guarantee, "nowhere"), Files())

    def test_a_record_that_the_schema_does_not_take_is_named(self, broker: KafkaBroker) -> None:
        with pytest.raises(
            SerializationError, match=r"KafkaSink \(out\): SimpleStringSchema: expected str, found int 7"
        ):
            written(sink(broker.bootstrap_servers), ["a", 7], Files())

    @pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (
                {"headers": lambda _: [("a", "no")]},
                r"header 'a': expected bytes or None, found str 'no'; encode it",
            ),
            ({"headers": lambda _: [(b"a", b"text")]}, r"name of a header: expected a str, found bytes"),
            ({"headers": lambda _: {"a": b"text"}}, r"headers: expected a list of pairs .*, found dict"),
            ({"headers": lambda _: [("a",)]}, r"header: expected a pair .*, found tuple"),
            ({"partition": lambda _: "1"}, r"partition: expected an int that is not negative, found str '1'"),
            ({"partition": lambda _: None}, r"partition: expected an int that is not negative, found NoneType"),
            ({"partition": lambda _: 1.0}, r"partition: expected an int that is not negative, found float"),
            ({"partition": lambda _: -5}, r"partition: expected an int that is not negative, found int -5"),
            ({"partition": lambda _: 3}, r"partition: topic 'out' at Kafka .* has partitions 0 to 2, found 3"),
            ({"value": NotEncoded()}, r"value: expected bytes or None, found str 'bad'; encode it"),
            ({"key": NotEncoded()}, r"key: expected bytes or None, found str 'bad'; encode it"),
            ({"topic": lambda _: None}, r"topic: expected a str, found NoneType None"),
            ({"topic": lambda _: ""}, r"topic: expected a name of up to 249 .* found str ''"),
            ({"topic": lambda _: "a b/c"}, r"topic: expected a name of up to 249 .* found str 'a b/c'"),
            ({"topic": lambda _: "nope"}, r"topic: Kafka .* has no topic 'nope'; create it"),
            ({"headers": lambda _: [("a", b"x" * 1_000_000)]}, r"a message of 10000\d\d bytes is larger"),
        ],
        ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
    )
    def test_what_cannot_be_sent_is_refused_before_a_checkpoint_promises_it(
        self,
        broker: KafkaBroker,
        guarantee: DeliveryGuarantee,
        change: dict[str, Any],
        text: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Once it is promised it must be written, and the job could not even start again."""
        monkeypatch.setattr(existing_topics, "CREATION_SECONDS", 0.01)
        made = choosing(broker, guarantee, change)
        with pytest.raises(SerializationError, match=rf"KafkaSink .*: {text}.*; record: 'bad'"):
            written(made, ["fine", "bad"], Files())

    @pytest.mark.parametrize("guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
    def test_partitions_may_be_of_any_type_of_integers(self, broker: KafkaBroker, guarantee: DeliveryGuarantee) -> None:
        made, files = choosing(broker, guarantee, {"partition": lambda _: numpy.int64(2)}), Files()
        opened(made, files).commit(written(made, ["bad"], files))
        assert [each.partition for each in read_all(broker.bootstrap_servers, "out")] == [2]

    def test_partitions_that_are_added_later_are_found(self, broker: KafkaBroker) -> None:
        numbers = iter((2, 3, 3, 3))
        made = choosing(broker, DeliveryGuarantee.EXACTLY_ONCE, {"partition": lambda _: next(numbers)})
        writer = made.create_writer(context(Files()))
        writer.write_batch(["a"], None)
        with pytest.raises(SerializationError, match="found 3"):
            writer.write_batch(["a"], None)
        broker.create_topic("out", 4)
        writer.write_batch(["a"], None)
        writer.close()

    def test_a_commit_that_fails_names_the_topic_the_partition_and_the_reason(self, broker: KafkaBroker) -> None:
        made, files = choosing(broker, DeliveryGuarantee.EXACTLY_ONCE, {"topic": lambda _: "in"}), Files()
        parts = written(made, ["bad"], files)
        broker.forbid_writes("in")
        with pytest.raises(HeadwaterError, match=r"a message to partition \d of topic 'in' at Kafka .*(?i:authoriz)"):
            opened(made, files).commit(parts)

    @pytest.mark.parametrize(
        ("make", "text"),
        [
            (lambda: KafkaSink.builder().build(), "set_bootstrap_servers"),
            (lambda: KafkaSink.builder().set_bootstrap_servers("h:1").build(), "set_record_serializer"),
            (lambda: KafkaSink.builder().set_delivery_guarantee("EXACTLY_ONCE"), "DeliveryGuarantee"),  # type: ignore[arg-type]
            (
                lambda: KafkaSink.builder().set_record_serializer(KafkaRecordSerializationSchema.builder()),  # type: ignore[arg-type]
                "did you forget build",
            ),
            (lambda: KafkaRecordSerializationSchema.builder().build(), "either set_topic or set_topic_selector"),
            (lambda: KafkaRecordSerializationSchema.builder().set_topic("a").build(), "value_serialization_schema"),
            (lambda: FlinkKafkaProducer("t", SimpleStringSchema(), {}), "bootstrap.servers"),
        ],
    )
    def test_what_cannot_work_is_refused_when_it_is_built(self, make: Any, text: str) -> None:
        with pytest.raises(ConfigurationError, match=text):
            make()


def test_the_older_producer_is_the_same_sink(broker: KafkaBroker) -> None:
    config = {"bootstrap.servers": broker.bootstrap_servers}
    for semantic in Semantic:
        made, files = FlinkKafkaProducer("out", SimpleStringSchema(), config, semantic=semantic), Files()
        opened(made, files).commit(written(made, [semantic.name], files))
    assert values(broker.bootstrap_servers, "out") == sorted(Semantic.__members__)
