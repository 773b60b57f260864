"""Records into streams of Kinesis and Firehose, in batches: at least once, and in order for each partition key."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from headwater.common.callables import unfit
from headwater.common.connector import Committer, ReusableSinkWriter, Sink, SinkWriter, WriterContext
from headwater.common.errors import (
    ConfigurationError,
    ExternalSystemError,
    HeadwaterError,
    SerializationError,
    UserCodeError,
    short_repr,
)
from headwater.common.row_changes import is_insert_only
from headwater.common.secrets import shown
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.batch_retry import left_over
from headwater.datastream.connectors.kinesis.client import AwsClient, checked_properties, log
from headwater.datastream.connectors.message_sink import serializer_of
from headwater.datastream.connectors.spool_committer import NothingToCommit
from headwater.datastream.no_effect import warn_no_effect

ATTEMPTS: Final = 10
"""How often a batch is sent of which Kinesis takes nothing, before the job's restart strategy decides."""
MOST_WAIT_SECONDS: Final = 5.0


class PartitionKeyGenerator:
    """Gives each record its partition key, which decides about its shard: `function(record, partition of the sink)`."""

    def __init__(self, function: Callable[[Any, int], str]) -> None:
        if found := unfit(function, 2):
            raise ConfigurationError(f"PartitionKeyGenerator: expected function(record, partition), found {found}")
        self.key_of = function

    @staticmethod
    def fixed() -> PartitionKeyGenerator:
        """All records of one partition of the sink go to one shard."""
        return PartitionKeyGenerator(_partition)

    @staticmethod
    def random() -> PartitionKeyGenerator:
        """Records are spread over all shards, in no order."""
        return PartitionKeyGenerator(_random)

    @staticmethod
    def of(function: Callable[[Any], str]) -> PartitionKeyGenerator:
        """`function(record)`: records of one key stay in order."""
        if found := unfit(function, 1):
            raise ConfigurationError(f"PartitionKeyGenerator.of: expected a function of a record, found {found}")
        return PartitionKeyGenerator(_OfRecord(function))


def _partition(record: Any, partition: int) -> str:
    return str(partition)


def _random(record: Any, partition: int) -> str:
    return uuid.uuid4().hex


class _OfRecord:
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def __call__(self, record: Any, partition: int) -> str:
        return self._function(record)


class Limits(NamedTuple):
    """What one request may have."""

    records: int
    bytes: int
    record_bytes: int


class Entry(NamedTuple):
    """One record on its way. Those with the same key stay in order."""

    data: bytes
    key: str | None

    @property
    def size(self) -> int:
        return len(self.data) + len((self.key or "").encode())


class _BatchSink(Sink):
    """Base of both: writers send batches as records come, and wait for the answers before an epoch ends."""

    service: str

    def __init__(
        self,
        target: str,
        properties: Mapping[str, str],
        value_of: Callable[[Any], bytes],
        limits: Limits,
        fail_on_error: bool,
    ) -> None:
        self.target = target
        self.properties = dict(properties)
        self.value_of = value_of
        self.insert_only = is_insert_only(value_of)
        self.limits = limits
        self.fail_on_error = fail_on_error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target}, {shown(self.properties)})"

    def client(self) -> AwsClient:
        return AwsClient(f"{type(self).__name__} ({self.target})", self.service, self.properties)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return BatchWriter(self, self.client(), context.partition)

    def create_committer(self) -> Committer:
        return NothingToCommit(self.check)

    def check(self) -> None:
        """Raise if the target is not there."""
        raise NotImplementedError

    def key(self, record: Any, partition: int) -> str | None:
        return None

    def put(self, client: AwsClient, entries: Sequence[Entry]) -> list[str | None]:
        """Send a batch. Return, for each record, why it was not taken; None: it was."""
        raise NotImplementedError

    def entry(self, record: Any, partition: int) -> Entry:
        name = type(self).__name__
        try:
            entry = Entry(self.value_of(record), self.key(record, partition))
        except HeadwaterError:
            raise
        except Exception as error:
            raise UserCodeError.from_exception(error, name, record, -1) from error
        data, key = entry
        if not isinstance(data, bytes) or not (key is None or (isinstance(key, str) and 0 < len(key) <= 256)):
            raise SerializationError(
                f"{name}: data {short_repr(data)} and partition key {short_repr(key)} of record {short_repr(record)}; "
                "expected bytes, and text of 1 to 256 characters"
            )
        if entry.size > self.limits.record_bytes:
            raise SerializationError(
                f"{name}: record {short_repr(record)} has {entry.size} bytes; expected at most "
                f"{self.limits.record_bytes} (set_max_record_size_in_bytes)"
            )
        return entry


class BatchWriter(ReusableSinkWriter):
    """Collects records and sends them. What a request could not place is sent again, before anything that follows.

    So a record that comes again, or too late, is followed by all later ones of its key: the last record of a key that a
    reader sees is the last one that was written.
    """

    def __init__(self, sink: _BatchSink, client: AwsClient, partition: int) -> None:
        self._sink = sink
        self._client = client
        self._partition = partition
        self._entries: list[Entry] = []
        self._bytes = 0

    def begin_epoch(self, context: WriterContext) -> None: ...

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        for entry in [self._sink.entry(value, self._partition) for value in values]:
            if len(self._entries) == self._sink.limits.records or self._bytes + entry.size > self._sink.limits.bytes:
                self._flush()
            self._entries.append(entry)
            self._bytes += entry.size

    def prepare_commit(self) -> list[Any]:
        self._flush()
        return []

    def abort(self) -> None:
        self._entries, self._bytes = [], 0

    def _flush(self) -> None:
        entries = self._entries
        self.abort()
        attempt = 0
        while entries:
            problems = self._sink.put(self._client, entries)
            again, problem = left_over(entries, problems)
            if problem is None:
                return
            message = f"{self._client.owner}: {len(again)} of {len(entries)} records were not taken: {problem}"
            if self._sink.fail_on_error:
                raise HeadwaterError(f"{message}; set_fail_on_error(False) sends them again")
            attempt = 0 if len(again) < len(entries) else attempt + 1
            if attempt == ATTEMPTS:
                raise ExternalSystemError(f"{message}; tried {ATTEMPTS} times")
            log.info("%s; they are sent again", message)
            time.sleep(min(0.05 * 2**attempt, MOST_WAIT_SECONDS))
            entries = again


class KinesisStreamsSink(_BatchSink):
    """Puts records into a stream: at least once. After a failure some come again."""

    service = "kinesis"

    def __init__(self, *arguments: Any, keys: PartitionKeyGenerator) -> None:
        super().__init__(*arguments)
        self.keys = keys

    @staticmethod
    def builder() -> KinesisStreamsSinkBuilder:
        return KinesisStreamsSinkBuilder()

    def key(self, record: Any, partition: int) -> str:
        return self.keys.key_of(record, partition)

    def check(self) -> None:
        self.client().call("cannot find the stream", "describe_stream_summary", StreamName=self.target)

    def put(self, client: AwsClient, entries: Sequence[Entry]) -> list[str | None]:
        records = [{"Data": entry.data, "PartitionKey": entry.key} for entry in entries]
        answer = client.call("cannot put records", "put_records", StreamName=self.target, Records=records)
        return [_problem(each) for each in answer["Records"]]


class KinesisFirehoseSink(_BatchSink):
    """Puts records into a delivery stream of Firehose: at least once."""

    service = "firehose"

    @staticmethod
    def builder() -> KinesisFirehoseSinkBuilder:
        return KinesisFirehoseSinkBuilder()

    def check(self) -> None:
        self.client().call(
            "cannot find the delivery stream", "describe_delivery_stream", DeliveryStreamName=self.target
        )

    def put(self, client: AwsClient, entries: Sequence[Entry]) -> list[str | None]:
        records = [{"Data": entry.data} for entry in entries]
        answer = client.call("cannot put records", "put_record_batch", DeliveryStreamName=self.target, Records=records)
        return [_problem(each) for each in answer["RequestResponses"]]


def _problem(answer: Mapping[str, Any]) -> str | None:
    if not answer.get("ErrorCode"):
        return None
    return f"{answer['ErrorCode']}: {answer.get('ErrorMessage', '')}"


class _Builder:
    """What both builders have."""

    _limits: Limits

    def __init__(self) -> None:
        self._target = ""
        self._properties: Mapping[str, str] = {}
        self._value_of: Callable[[Any], bytes] | None = None
        self._fail_on_error = False

    def set_serialization_schema(self, serialization_schema: SerializationSchema) -> Self:
        self._value_of = serializer_of(serialization_schema, self._name)
        return self

    def set_fail_on_error(self, fail_on_error: bool) -> Self:
        """True: fail the job if a record is not taken. False (the default): send it again."""
        self._fail_on_error = fail_on_error
        return self

    def set_max_batch_size(self, max_batch_size: int) -> Self:
        """Records in one request: at most 500, the service's limit and the default."""
        return self._limit("records", max_batch_size)

    def set_max_batch_size_in_bytes(self, max_batch_size_in_bytes: int) -> Self:
        return self._limit("bytes", max_batch_size_in_bytes)

    def set_max_record_size_in_bytes(self, max_record_size_in_bytes: int) -> Self:
        """A larger record is refused (dead letters)."""
        return self._limit("record_bytes", max_record_size_in_bytes)

    def set_max_in_flight_requests(self, max_in_flight_requests: int) -> Self:
        warn_no_effect("set_max_in_flight_requests()", "each partition of a sink has one request under way")
        return self

    def set_max_buffered_requests(self, max_buffered_requests: int) -> Self:
        warn_no_effect("set_max_buffered_requests()", "a full batch is sent before more is taken")
        return self

    def set_max_time_in_buffer_ms(self, max_time_in_buffer_ms: int) -> Self:
        warn_no_effect("set_max_time_in_buffer_ms()", "what is in the buffer is sent when its epoch ends")
        return self

    @property
    def _name(self) -> str:
        return type(self).__name__.removesuffix("Builder")

    def _limit(self, name: str, value: Any) -> Self:
        most = getattr(type(self)._limits, name)
        if not isinstance(value, int) or not 0 < value <= most:
            raise ConfigurationError(f"{self._name}: {name} of a request: expected 1 to {most}, found {value!r}")
        self._limits = self._limits._replace(**{name: value})
        return self

    def _arguments(self, name_it: str) -> tuple[Any, ...]:
        if not self._target or self._value_of is None:
            raise ConfigurationError(f"{self._name}: call {name_it}('name') and set_serialization_schema(...)")
        properties = checked_properties(self._properties, self._name)
        return self._target, properties, self._value_of, self._limits, self._fail_on_error


class KinesisStreamsSinkBuilder(_Builder):
    """Collects the settings of a `KinesisStreamsSink`."""

    _limits = Limits(500, 5 << 20, 1 << 20)

    def __init__(self) -> None:
        super().__init__()
        self._keys = PartitionKeyGenerator.random()

    def set_stream_name(self, stream_name: str) -> KinesisStreamsSinkBuilder:
        self._target = stream_name
        return self

    def set_kinesis_client_properties(self, kinesis_client_properties: Mapping[str, str]) -> KinesisStreamsSinkBuilder:
        self._properties = kinesis_client_properties
        return self

    def set_partition_key_generator(self, partition_key_generator: PartitionKeyGenerator) -> KinesisStreamsSinkBuilder:
        if not isinstance(partition_key_generator, PartitionKeyGenerator):
            raise ConfigurationError(
                "KinesisStreamsSink: expected PartitionKeyGenerator.random(), fixed() or of(function), found "
                f"{short_repr(partition_key_generator)}"
            )
        self._keys = partition_key_generator
        return self

    def build(self) -> KinesisStreamsSink:
        return KinesisStreamsSink(*self._arguments("set_stream_name"), keys=self._keys)


class KinesisFirehoseSinkBuilder(_Builder):
    """Collects the settings of a `KinesisFirehoseSink`."""

    _limits = Limits(500, 4 << 20, 1000 << 10)

    def set_delivery_stream_name(self, delivery_stream_name: str) -> KinesisFirehoseSinkBuilder:
        self._target = delivery_stream_name
        return self

    def set_firehose_client_properties(
        self, firehose_client_properties: Mapping[str, str]
    ) -> KinesisFirehoseSinkBuilder:
        self._properties = firehose_client_properties
        return self

    def build(self) -> KinesisFirehoseSink:
        return KinesisFirehoseSink(*self._arguments("set_delivery_stream_name"))
