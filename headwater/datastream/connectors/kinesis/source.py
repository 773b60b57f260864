"""Streams of Kinesis as a source: each shard is a split, and comes after the shards that it was made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.rejected import Rejected
from headwater.common.secrets import shown
from headwater.datastream.connectors.decoding_reader import Decode, decoder_of
from headwater.datastream.connectors.kinesis.client import PROPERTIES, AwsClient, checked_properties, log
from headwater.datastream.connectors.kinesis.reader import Position, Shard, ShardReader, now_ms, parents_of
from headwater.datastream.connectors.kinesis.record import KinesisDeserializationSchema, KinesisRecord, decoder
from headwater.datastream.no_effect import warn_no_effect

START: Final = "flink.stream.initpos"
START_TIME: Final = "flink.stream.initpos.timestamp"
START_FORMAT: Final = "flink.stream.initpos.timestamp.format"
DISCOVERY: Final = "flink.shard.discovery.intervalmillis"
STARTS: Final = ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")
DISCOVERY_MS: Final = 10_000
"""How often the source looks for new shards: Flink's default."""


class KinesisStreamsSource(Source):
    """Reads streams of Kinesis. Positions are sequence numbers, in the job's checkpoints.

    When a shard is split or merged, its children are read once it is read to its end: records of a key stay in order.
    """

    waits = True

    def __init__(
        self, streams: Sequence[str], properties: Mapping[str, str], decode: Decode, bounded: bool = False
    ) -> None:
        owner = type(self).__name__
        self.streams = (streams,) if isinstance(streams, str) else tuple(dict.fromkeys(streams))
        if not self.streams or not all(isinstance(each, str) and each for each in self.streams):
            raise ConfigurationError(f"{owner}: expected names of streams, found {streams!r}")
        self.properties = checked_properties(properties, owner)
        for unknown in self.properties.keys() - PROPERTIES - {START, START_TIME, START_FORMAT, DISCOVERY}:
            warn_no_effect(f"the property '{unknown}'", "boto3 reads the shards, with its own settings")
        self.bounded = bounded
        self._decode = decode
        self._start = self.properties.get(START, "LATEST")
        self._start_ms = _start_ms(self.properties, owner)
        interval = self.properties.get(DISCOVERY, str(DISCOVERY_MS))
        if not interval.isdecimal() or int(interval) < 1:
            raise ConfigurationError(f"{owner}: {DISCOVERY}: expected milliseconds, found {interval!r}")
        self.discovery_interval_ms = None if bounded else int(interval)

    @staticmethod
    def builder() -> KinesisStreamsSourceBuilder:
        return KinesisStreamsSourceBuilder()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.streams)}, {shown(self.properties)})"

    def _client(self) -> AwsClient:
        return AwsClient(f"{type(self).__name__} ({', '.join(self.streams)})", "kinesis", self._of_client())

    def _of_client(self) -> dict[str, str]:
        return {key: value for key, value in self.properties.items() if key in PROPERTIES}

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        client = self._client()
        found: list[Split] = []
        for stream in self.streams:
            try:
                listed = parents_of(client, stream)
            except HeadwaterError as error:
                if not known:
                    raise
                log.warning("%s; the job reads on the shards that it knows", error)
                continue
            found += self._new_shards(client, stream, listed, known)
        return found

    def _new_shards(
        self, client: AwsClient, stream: str, listed: Mapping[str, tuple[str, ...]], known: frozenset[str]
    ) -> list[Split]:
        # A job that starts with the newest records must know, when it is started again, when that was.
        start_ms = now_ms() if self._start == "LATEST" else self._start_ms
        later = any(each.startswith(f"{stream}/") for each in known)
        found = []
        for shard_id, parents in listed.items():
            split_id = f"{stream}/{shard_id}"
            if split_id in known:
                continue
            if later and not (parents and all(parent in listed for parent in parents)):
                raise HeadwaterError(
                    f"{client.owner}: {shard_id} of stream '{stream}' is new to the job, and the shards before it "
                    f"({', '.join(parents) or 'none'}) are not there any more: its first records may be trimmed. "
                    "Nothing was skipped: start the job anew from a position that you choose (a new checkpoint "
                    "directory), and keep records for longer than the job may be down"
                )
            # What appears while the job runs is read from its beginning.
            shard = Shard(stream, shard_id, parents, None if later else start_ms, later, self.bounded)
            found.append(Split(split_id, shard))
        return found

    def read_after(self, split: Split) -> Collection[str]:
        shard: Shard = split.payload
        return [f"{shard.stream}/{parent}" for parent in shard.parents]

    def open_reader(self, split: Split, position: Position | None) -> SplitReader:
        return ShardReader(self._client(), split, position, self._decode)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        at = rejected.attributes
        key, sequence, stream, shard = (str(at[name]) for name in ("key", "sequence", "stream", "shard"))
        return self._decode(
            KinesisRecord(rejected.raw or b"", key, sequence, rejected.timestamp_ms or 0, stream, shard)
        )


def _start_ms(properties: Mapping[str, str], owner: str) -> int | None:
    """The time of AT_TIMESTAMP: seconds since 1970, or a date, as in Flink."""
    start = properties.get(START, "LATEST")
    if start not in STARTS:
        raise ConfigurationError(f"{owner}: {START}: expected one of {', '.join(STARTS)}, found {start!r}")
    if start != "AT_TIMESTAMP":
        return None
    text = properties.get(START_TIME, "")
    if START_FORMAT in properties:
        warn_no_effect(START_FORMAT, "dates are read in ISO 8601, such as 2026-01-31T12:00:00+00:00")
    try:
        return int(float(text) * 1000)
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{owner}: {START_TIME}: expected seconds since 1970, or a date such as 2026-01-31T12:00:00+00:00, found "
            f"{text!r}"
        ) from None
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)


class FlinkKinesisConsumer(KinesisStreamsSource):
    """PyFlink's name of the source, for `env.add_source(...)`."""

    def __init__(self, streams: str | list[str], deserializer: Any, config_props: Mapping[str, str]) -> None:
        super().__init__(streams, config_props, decoder(deserializer, "FlinkKinesisConsumer"))

    def set_shard_assigner(self, shard_assigner: Any) -> FlinkKinesisConsumer:
        warn_no_effect("set_shard_assigner()", "Spark places the tasks that read shards")
        return self

    def set_watermark_tracker(self, watermark_tracker: Any) -> FlinkKinesisConsumer:
        warn_no_effect("set_watermark_tracker()", "use WatermarkStrategy.with_watermark_alignment()")
        return self

    def set_periodic_watermark_assigner(self, periodic_watermark_assigner: Any) -> FlinkKinesisConsumer:
        warn_no_effect("set_periodic_watermark_assigner()", "use assign_timestamps_and_watermarks() of the stream")
        return self


class KinesisStreamsSourceBuilder:
    """Collects the settings of a `KinesisStreamsSource`."""

    def __init__(self) -> None:
        self._streams: tuple[str, ...] = ()
        self._properties: dict[str, str] = {}
        self._decode: Decode | None = None
        self._bounded = False

    def set_streams(self, *streams: str) -> KinesisStreamsSourceBuilder:
        self._streams = streams
        return self

    def set_kinesis_client_properties(self, properties: Mapping[str, str]) -> KinesisStreamsSourceBuilder:
        """aws.region, aws.endpoint, aws.credentials.provider.basic.accesskeyid, ..., as Flink has them."""
        self._properties |= properties
        return self

    def set_initial_position(self, position: str, timestamp: Any = None) -> KinesisStreamsSourceBuilder:
        """TRIM_HORIZON: the oldest record there is; LATEST (the default): what comes after the job starts;
        AT_TIMESTAMP: what came since `timestamp`, seconds or an ISO date."""
        self._properties[START] = position
        if timestamp is not None:
            self._properties[START_TIME] = str(timestamp)
        return self

    def set_bounded(self) -> KinesisStreamsSourceBuilder:
        """End each shard where nothing more is to be had: all is read that is there when the job starts."""
        self._bounded = True
        return self

    def set_value_only_deserializer(self, schema: Any) -> KinesisStreamsSourceBuilder:
        """What a `DeserializationSchema` makes of the data."""
        self._decode = decoder(schema, "KinesisStreamsSource")
        return self

    def set_deserializer(
        self, deserializer: KinesisDeserializationSchema | Callable[[KinesisRecord], Any]
    ) -> KinesisStreamsSourceBuilder:
        """What a schema, or a function, makes of a `KinesisRecord`; None: no record."""
        if isinstance(deserializer, KinesisDeserializationSchema):
            self._decode = decoder(deserializer, "KinesisStreamsSource")
        else:
            self._decode = decoder_of(deserializer, "KinesisStreamsSource: set_deserializer")
        return self

    def build(self) -> KinesisStreamsSource:
        if self._decode is None:
            raise ConfigurationError(
                "KinesisStreamsSource: no schema; call set_value_only_deserializer(SimpleStringSchema()), for example"
            )
        return KinesisStreamsSource(self._streams, self._properties, self._decode, self._bounded)
