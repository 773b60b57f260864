"""The connectors kafka and upsert-kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.types import Row, RowKind
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from headwater.table.stream.connectors.contract import (
    ChangelogMode,
    Connector,
    Field,
    TableContext,
    TableSink,
    TableSource,
)
from headwater.table.stream.connectors.filesystem import FormatConverter
from headwater.table.stream.connectors.formats import Format, TextRows, format_of

METADATA = ("topic", "partition", "offset", "timestamp", "headers", "leader-epoch", "timestamp-type")
_OURS = METADATA[:5]


class KafkaConnector(Connector):
    """A topic as a log of rows, or, with debezium-json and its kin, of changes."""

    data_options = ("topic", "topic-pattern")

    upsert = False

    def source(self, context: TableContext) -> TableSource:
        layout = _layout(context, self.upsert)
        builder = KafkaSource.builder().set_bootstrap_servers(context.options.required("properties.bootstrap.servers"))
        topics, pattern = context.options.text("topic"), context.options.text("topic-pattern")
        if (topics is None) == (pattern is None):
            raise context.error("it needs 'topic' or 'topic-pattern'")
        builder = (
            builder.set_topics(*topics.split(";")) if topics is not None else builder.set_topic_pattern(str(pattern))
        )
        for key, value in _properties(context).items():
            builder = builder.set_property(key, value)
        group = context.options.text("properties.group.id")
        if group is not None:
            builder = builder.set_group_id(group)
        interval = context.duration_ms("scan.topic-partition-discovery.interval")
        if interval is not None:
            builder = builder.set_property("partition.discovery.interval.ms", str(interval))
        builder = builder.set_starting_offsets(_start(context, self.upsert, group))
        bounded = _end(context, group)
        if bounded is not None:
            builder = builder.set_bounded(bounded)
        _sink_options(context)
        source = builder.set_deserializer(MessageRows(layout.plan())).build()
        places = tuple(range(len(context.fields)))
        converter = FormatConverter(context.fields, places, context.zone, str(context.identifier))
        return TableSource(source, converter, ChangelogMode.UPSERT if self.upsert else layout.value.mode)

    def sink(self, context: TableContext) -> TableSink:
        layout = _layout(context, self.upsert)
        topic = context.options.required("topic")
        if ";" in topic:
            raise context.error("a sink writes into one topic")
        for each in context.fields:
            if each.metadata not in (None, "headers"):
                raise context.error(
                    f"column '{each.name}': metadata '{each.metadata}' cannot be written; make it VIRTUAL"
                )
        value = PartOf(layout.value.writer(), [each.name for each in layout.value.fields], self.upsert)
        serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(value)
        if layout.key is not None:
            names = [layout.names[each.name] for each in layout.key.fields]
            key = PartOf(layout.key.writer(), names, False, [each.name for each in layout.key.fields])
            serializer = serializer.set_key_serialization_schema(key)
        headers = next((each.name for each in context.fields if each.metadata == "headers"), None)
        if headers is not None:
            serializer = serializer.set_headers_provider(HeadersOf(context.names.index(headers)))
        options = context.options
        if (options.text("sink.partitioner") or "default") != "default":
            raise context.error("'sink.partitioner' is there as 'default' only: by the message's key")
        builder = KafkaSink.builder().set_bootstrap_servers(options.required("properties.bootstrap.servers"))
        builder = builder.set_record_serializer(serializer.build())
        for name, text in _properties(context).items():
            builder.set_property(name, text)
        guarantee = (options.text("sink.delivery-guarantee") or "at-least-once").upper().replace("-", "_")
        if guarantee not in DeliveryGuarantee.__members__:
            raise context.error("'sink.delivery-guarantee' is exactly-once, at-least-once or none")
        builder = builder.set_delivery_guarantee(DeliveryGuarantee[guarantee])
        if prefix := options.text("sink.transactional-id-prefix"):
            builder = builder.set_transactional_id_prefix(prefix)
        options.ignored("properties.group.id", *_SCAN)
        encoder = TextRows(context.names, context.types, iso=layout.value.iso)
        mode = ChangelogMode.UPSERT if self.upsert else layout.value.mode
        return TableSink(builder.build(), encoder, mode, context.sink_parallelism())


class UpsertKafkaConnector(KafkaConnector):
    """A compacted topic: a message replaces the one with its key, a tombstone deletes it."""

    upsert = True


_SCAN = (
    "scan.startup.mode",
    "scan.startup.timestamp-millis",
    "scan.startup.specific-offsets",
    "scan.bounded.mode",
    "scan.bounded.timestamp-millis",
    "scan.topic-partition-discovery.interval",
)


def _sink_options(context: TableContext) -> None:
    context.options.ignored("sink.partitioner", "sink.delivery-guarantee", "sink.transactional-id-prefix")
    context.options.ignored("sink.parallelism", "sink.buffer-flush.max-rows", "sink.buffer-flush.interval")


def _properties(context: TableContext) -> dict[str, str]:
    """Settings of the client: options that begin with `properties.`."""
    found = {}
    for key in context.table.options:
        if key.startswith("properties.") and key not in ("properties.bootstrap.servers", "properties.group.id"):
            found[key.removeprefix("properties.")] = context.options.required(key)
    return found


def _start(context: TableContext, upsert: bool, group: str | None) -> KafkaOffsetsInitializer:
    mode = context.options.text("scan.startup.mode") or ("earliest-offset" if upsert else "group-offsets")
    stamp = context.options.number("scan.startup.timestamp-millis")
    offsets = context.options.text("scan.startup.specific-offsets")
    match mode:
        case "earliest-offset":
            return KafkaOffsetsInitializer.earliest()
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets" if group is not None:
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
        case "group-offsets":  # without a group nothing is committed: as a group that has nothing committed yet
            return KafkaOffsetsInitializer.earliest()
        case "timestamp" if stamp is not None:
            return KafkaOffsetsInitializer.timestamp(int(stamp))
        case "specific-offsets" if offsets is not None:
            return KafkaOffsetsInitializer.offsets(_offsets(context, offsets))
    raise context.error(
        f"'scan.startup.mode' = '{mode}': there is earliest-offset, latest-offset, group-offsets, timestamp (with"
        " 'scan.startup.timestamp-millis') and specific-offsets (with 'scan.startup.specific-offsets')"
    )


def _offsets(context: TableContext, text: str) -> dict[KafkaTopicPartition, int]:
    """`partition:0,offset:42;partition:1,offset:300`"""
    topic = context.options.required("topic")
    found = {}
    for part in filter(None, text.split(";")):
        try:
            values = dict(each.split(":") for each in part.split(","))
            found[KafkaTopicPartition(topic, int(values["partition"]))] = int(values["offset"])
        except (KeyError, ValueError):
            raise context.error(
                f"'scan.startup.specific-offsets' has '{part}'; expected it as 'partition:0,offset:42'"
            ) from None
    return found


def _end(context: TableContext, group: str | None) -> KafkaOffsetsInitializer | None:
    mode = context.options.text("scan.bounded.mode") or "unbounded"
    stamp = context.options.number("scan.bounded.timestamp-millis")
    match mode:
        case "unbounded":
            return None
        case "latest-offset":
            return KafkaOffsetsInitializer.latest()
        case "group-offsets" if group is None:
            raise context.error("'scan.bounded.mode' = 'group-offsets' needs 'properties.group.id'")
        case "group-offsets":
            return KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
        case "timestamp" if stamp is not None:
            return KafkaOffsetsInitializer.timestamp(int(stamp))
    raise context.error(
        f"'scan.bounded.mode' = '{mode}': there is unbounded, latest-offset, group-offsets and timestamp (with"
        " 'scan.bounded.timestamp-millis')"
    )


@dataclass(frozen=True)
class Plan:
    """Where each column of a message comes from: ("value", place), ("key", place) or ("metadata", its key)."""

    value: DeserializationSchema
    key: DeserializationSchema | None
    columns: tuple[tuple[str, Any], ...]
    upsert: bool


@dataclass(frozen=True)
class Layout:
    context: TableContext
    value: Format
    key: Format | None
    names: dict[str, str]
    """{name in the key format: the column's name}"""
    upsert: bool

    def plan(self) -> Plan:
        in_value = {each.name: place for place, each in enumerate(self.value.fields)}
        in_key = {self.names[each.name]: place for place, each in enumerate(self.key.fields)} if self.key else {}
        columns: list[tuple[str, Any]] = []
        for each in self.context.fields:
            if each.metadata is not None:
                if each.metadata.removeprefix("value.") != each.metadata or each.metadata not in _OURS:
                    known = ", ".join(_OURS)
                    raise self.context.error(
                        f"column '{each.name}': there is no metadata '{each.metadata}', but {known}"
                    )
                columns.append(("metadata", each.metadata))
            elif each.name in in_key:
                columns.append(("key", in_key[each.name]))
            else:
                columns.append(("value", in_value[each.name]))
        key = None if self.key is None else self.key.reader()
        return Plan(self.value.reader(), key, tuple(columns), self.upsert)


def _layout(context: TableContext, upsert: bool) -> Layout:
    options = context.options
    physical = [Field(c.name, c.type) for c in context.schema.columns if c.is_physical()]
    value_key = "value.format" if "value.format" in context.table.options else "format"
    prefix = "value." if value_key == "value.format" else ""
    include = options.text("value.fields-include") or "ALL"
    if include not in ("ALL", "EXCEPT_KEY"):
        raise context.error("'value.fields-include' is ALL or EXCEPT_KEY")
    before = options.text("key.fields-prefix") or ""
    if upsert:
        keys = list(context.schema.primary_key)
        if not keys:
            raise context.error("upsert-kafka needs a PRIMARY KEY (…) NOT ENFORCED: the messages' keys")
    else:
        keys = [each for each in (options.text("key.fields") or "").split(";") if each]
    known = [each.name for each in physical]
    for name in keys:
        if name not in known:
            raise context.error(f"'key.fields' names '{name}', which is no column")
    key_fields = [Field(f.name.removeprefix(before), f.type) for f in physical if f.name in keys]
    names = {field.name.removeprefix(before): field.name for field in physical if field.name in keys}
    value_fields = [each for each in physical if include == "ALL" or each.name not in keys]
    value = format_of(context, value_key, value_fields, prefix)
    key = format_of(context, "key.format", key_fields, "key.") if keys else None
    if upsert and value.mode is not ChangelogMode.APPEND:
        raise context.error(f"upsert-kafka takes no format of changes, found '{value.name}'")
    if not upsert and context.schema.primary_key and value.mode is ChangelogMode.APPEND:
        raise context.error(
            f"a PRIMARY KEY with the format '{value.name}' promises what a log of rows cannot keep; use upsert-kafka, a"
            " format of changes such as debezium-json, or no PRIMARY KEY"
        )
    return Layout(context, value, key, names, upsert)


class MessageRows(KafkaRecordDeserializationSchema):
    """Rows of a message: of its value, its key and what Kafka knows about it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def deserialize(self, record: KafkaRecord) -> Sequence[Any]:
        plan = self._plan
        key = None if plan.key is None or record.key is None else plan.key.deserialize(record.key)
        if record.value is None:
            return [self._row(RowKind.DELETE, None, key, record)] if plan.upsert and key is not None else []
        several = getattr(plan.value, "deserialize_all", None)
        found = several(record.value) if several is not None else [plan.value.deserialize(record.value)]
        return [self._row(row.get_row_kind(), row, key, record) for row in found if row is not None]

    def _row(self, kind: RowKind, value: Any, key: Any, record: KafkaRecord) -> Row:
        values = []
        for where, which in self._plan.columns:
            if where == "metadata":
                values.append(_metadata(record, which))
            else:
                part = value if where == "value" else key
                values.append(None if part is None else part[which])
        return Row.of_kind(kind, *values)


def _metadata(record: KafkaRecord, key: str) -> Any:
    if key == "headers":
        return dict(record.headers)
    return getattr(record, key)


class PartOf(SerializationSchema):
    """Writes some columns of a row. `upsert`: a deleted row is a tombstone."""

    def __init__(
        self, inner: SerializationSchema, names: Sequence[str], upsert: bool, called: Sequence[str] | None = None
    ) -> None:
        self._inner = inner
        self._names = list(names)
        self._upsert = upsert
        self._called = list(called or names)

    def serialize(self, value: Any) -> Any:
        kind = value.get_row_kind()
        if self._upsert and kind in (RowKind.DELETE, RowKind.UPDATE_BEFORE):
            return None
        row = Row.of_kind(kind, *(value[name] for name in self._names))
        row.set_field_names(self._called)
        return self._inner.serialize(row)


class HeadersOf:
    def __init__(self, place: int) -> None:
        self._place = place

    def __call__(self, row: Any) -> list[tuple[str, bytes | None]]:
        return [(key, value) for key, value in (row[self._place] or {}).items()]
