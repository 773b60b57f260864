"""The source: finds partitions in the driver, and makes readers in the tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, HeadwaterError, short_repr
from headwater.common.rejected import Rejected
from headwater.common.secrets import shown
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.kafka.client import KafkaClient, consumer, library, log
from headwater.datastream.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from headwater.datastream.connectors.kafka.reader import KafkaReader, PartitionRange
from headwater.datastream.connectors.kafka.record import KafkaRecord, KafkaRecordDeserializationSchema

DISCOVERY_MS = 300_000
"""How often an unbounded source looks for new partitions: Flink's default."""


@dataclass
class KafkaSourceSettings:
    """What the builder collects."""

    properties: dict[str, str] = field(default_factory=dict, repr=False)
    """Never shown: there may be secrets in it."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()
    starting: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    stopping: KafkaOffsetsInitializer | None = None
    bounded: bool = False
    schema: KafkaRecordDeserializationSchema | None = None

    @property
    def subscription(self) -> str:
        """For people."""
        if self.pattern is not None:
            return f"topics like '{self.pattern}'"
        return ", ".join(self.topics or map(str, self.partitions))


class KafkaSource(Source):
    """Reads topics of Kafka: each partition is a split, and the offset of the next record its position.

    Exactly once: the job's checkpoints hold the offsets. With a group id they are also committed to Kafka, after the
    checkpoint is durable, for people and tools to see.
    """

    waits = True

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self.settings = settings
        self._configure()
        self._driver_client: KafkaClient | None = None
        self._group_client: KafkaClient | None = None
        """Commits offsets, in a thread of its own."""

    def _configure(self) -> None:
        """Derive what the runtime asks for from the settings."""
        self.bounded = self.settings.bounded
        interval_ms = _number(self.settings.properties, "partition.discovery.interval.ms", DISCOVERY_MS)
        self.discovery_interval_ms = interval_ms if interval_ms > 0 and not self.bounded else None
        self._commits = self.settings.properties.get("commit.offsets.on.checkpoint", "true").lower() != "false"

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        return KafkaSourceBuilder()

    def __repr__(self) -> str:
        return f"KafkaSource({self.settings.subscription} at {shown(self.settings.properties)['bootstrap.servers']})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver_client": None, "_group_client": None}  # they have threads and connections

    @property
    def _owner(self) -> str:
        return f"KafkaSource ({self.settings.subscription})"

    # --- the driver

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        settings = self.settings
        client = self._client()
        try:
            partitions = self._subscribed(client)
        except HeadwaterError as error:
            if not known:
                raise
            log.warning("%s; the job reads on the partitions that it knows", error)
            return []
        new = [each for each in partitions if str(each) not in known]
        # What appears while the job runs is read from its beginning: otherwise its first records would be lost.
        starting = KafkaOffsetsInitializer.earliest() if known else settings.starting
        starts = starting.resolve(client, new)
        stops = settings.stopping.resolve(client, new) if settings.stopping is not None else {}
        return [
            Split(str(each), PartitionRange(each.topic, each.partition, starts[each], stops.get(each))) for each in new
        ]

    def _subscribed(self, client: KafkaClient) -> list[KafkaTopicPartition]:
        settings = self.settings
        if settings.pattern is not None:
            found = client.topics()
            names = sorted(name for name in found if re.fullmatch(settings.pattern, name))
        else:
            wanted = settings.topics or tuple(dict.fromkeys(each.topic for each in settings.partitions))
            found = {name: each for topic in wanted for name, each in client.topics(topic).items()}
            names = list(wanted)
            missing = [name for name in names if name not in found]
            if missing:
                raise HeadwaterError(
                    f"{self._owner}: Kafka {client.servers} has no topic {', '.join(map(repr, missing))}; create it, "
                    "or correct its name"
                )
        there = [KafkaTopicPartition(name, number) for name in names for number in sorted(found[name].partitions)]
        if not settings.partitions:
            return there
        absent = [each for each in settings.partitions if each not in there]
        if absent:
            raise HeadwaterError(
                f"{self._owner}: Kafka {client.servers} has no partition {', '.join(map(str, absent))}"
            )
        return list(settings.partitions)

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        """Commit the offsets of the group, for those who watch it. The job itself does not need them."""
        if not self._commits or not self.settings.properties.get("group.id"):
            return
        kafka = library()
        offsets = [
            kafka.TopicPartition(topic, int(partition), offset)
            for (topic, _, partition), offset in ((name.rpartition("-"), at) for name, at in positions.items())
        ]
        if self._group_client is None:
            self._group_client = consumer(self._owner, self.settings.properties)
        client = self._group_client
        try:
            client.client.commit(offsets=offsets, asynchronous=False)
        except kafka.KafkaException as error:
            raise client.failed("cannot commit the group's offsets", error) from None

    def close(self) -> None:
        for client in (self._driver_client, self._group_client):
            if client is not None:
                client.client.close()
        self._driver_client = self._group_client = None

    def _client(self) -> KafkaClient:
        if self._driver_client is None:
            self._driver_client = consumer(self._owner, self.settings.properties, self._reading())
        return self._driver_client

    # --- the tasks

    def open_reader(self, split: Split, position: int | None) -> SplitReader:
        assert self.settings.schema is not None
        client = consumer(self._owner, self.settings.properties, self._reading())
        return KafkaReader(client, split, position, self.settings.schema)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        assert self.settings.schema is not None
        return self.settings.schema.deserialize(KafkaRecord.of_rejected(rejected))

    def _reading(self) -> dict[str, Any]:
        properties = self.settings.properties
        own: dict[str, Any] = {} if "isolation.level" in properties else {"isolation.level": "read_committed"}
        if "client.id.prefix" in properties:
            own["client.id"] = properties["client.id.prefix"]
        return own


class KafkaSourceBuilder:
    """Collects the settings of a `KafkaSource`."""

    def __init__(self) -> None:
        self._settings = KafkaSourceSettings()

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """The consumer group: where `committed_offsets()` begins, and to which checkpoints' offsets are committed."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        self._subscribe("set_topics")
        self._settings.topics = tuple(topics)
        return self

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """All topics whose whole name the regular expression matches, also those that come later."""
        self._subscribe("set_topic_pattern")
        try:
            re.compile(topic_pattern)
        except re.error as error:
            raise ConfigurationError(
                f"set_topic_pattern: {topic_pattern!r} is no regular expression: {error}"
            ) from None
        self._settings.pattern = topic_pattern
        return self

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Only these partitions."""
        self._subscribe("set_partitions")
        self._settings.partitions = tuple(sorted(partitions))
        return self

    def _subscribe(self, method: str) -> None:
        settings = self._settings
        if settings.topics or settings.pattern is not None or settings.partitions:
            raise ConfigurationError(f"{method}: the source already reads {settings.subscription}; choose one of them")

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        self._settings.starting = _initializer("set_starting_offsets", starting_offsets_initializer)
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Read up to these offsets, in a job that counts as unbounded."""
        self._settings.stopping = _initializer("set_unbounded", stopping_offsets_initializer)
        self._settings.bounded = False
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Read up to these offsets, as they are when the job first looks; then the source has ended."""
        self._settings.stopping = _initializer("set_bounded", stopping_offsets_initializer)
        self._settings.bounded = True
        return self

    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema) -> KafkaSourceBuilder:
        """Records are made from the values of messages."""
        self._settings.schema = KafkaRecordDeserializationSchema.value_only(deserialization_schema)
        return self

    def set_deserializer(self, deserializer: KafkaRecordDeserializationSchema) -> KafkaSourceBuilder:
        """Records are made from whole messages, with key, headers, timestamp, partition and offset."""
        if not isinstance(deserializer, KafkaRecordDeserializationSchema):
            raise ConfigurationError(
                "set_deserializer: expected a KafkaRecordDeserializationSchema, found "
                f"{short_repr(deserializer, 100)}; set_value_only_deserializer takes schemas of values"
            )
        self._settings.schema = deserializer
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A property of the Kafka client. A value may refer to a secret: ${env:NAME}, ${file:/path}."""
        self._settings.properties[key] = str(value)
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        settings = self._settings
        library()  # says how to get it, if it is not there
        if not settings.properties.get("bootstrap.servers"):
            raise ConfigurationError("KafkaSource: no servers; call set_bootstrap_servers('host:9092')")
        if not (settings.topics or settings.pattern is not None or settings.partitions):
            raise ConfigurationError(
                "KafkaSource: nothing to read; call set_topics, set_topic_pattern or set_partitions"
            )
        if settings.schema is None:
            raise ConfigurationError(
                "KafkaSource: no schema; call set_value_only_deserializer(SimpleStringSchema()), for example"
            )
        return KafkaSource(settings)


def _initializer(method: str, given: object) -> KafkaOffsetsInitializer:
    if not isinstance(given, KafkaOffsetsInitializer):
        raise ConfigurationError(f"{method}: expected a KafkaOffsetsInitializer, found {short_repr(given, 100)}")
    return given


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise ConfigurationError(f"KafkaSource: {key}: expected a number of milliseconds, found {text!r}") from None
