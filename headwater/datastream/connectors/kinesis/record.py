"""Records of Kinesis, and what decodes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.decoding_reader import Decode, Message, OfSchema

AGGREGATED: Final = b"\xf3\x89\x9a\xc2"
"""How a record begins that the Kinesis Producer Library has made of several."""


class KinesisRecord(NamedTuple):
    """One record of a stream."""

    data: bytes
    partition_key: str
    sequence_number: str
    timestamp: int
    """When Kinesis stored it, in milliseconds."""
    stream: str
    shard_id: str


class KinesisDeserializationSchema(ABC):
    """Makes a record of the job from a record of Kinesis with its key and place; None: no record."""

    @abstractmethod
    def deserialize(self, record: KinesisRecord) -> Any: ...


class _Whole:
    def __init__(self, schema: KinesisDeserializationSchema) -> None:
        self._schema = schema

    def __call__(self, record: KinesisRecord) -> tuple[Any, ...]:
        made = self._schema.deserialize(record)
        return () if made is None else (made,)


def data_of(record: KinesisRecord) -> bytes:
    """The bytes that a schema of values gets."""
    if record.data.startswith(AGGREGATED):
        raise HeadwaterError(
            "the record was aggregated by the Kinesis Producer Library, which headwater cannot take apart; set "
            "AggregationEnabled=false at the producer"
        )
    return record.data


def decoder(schema: Any, what: str) -> Decode:
    """Of a `DeserializationSchema`, or of a `KinesisDeserializationSchema`."""
    return _Whole(schema) if isinstance(schema, KinesisDeserializationSchema) else OfSchema(schema, data_of, what)


def message_of(record: KinesisRecord) -> Message:
    place = {"stream": record.stream, "shard": record.shard_id, "sequence": record.sequence_number}
    return Message(
        record,
        record.data,
        f"record {record.sequence_number} of {record.shard_id} of stream '{record.stream}'",
        record.timestamp,
        {**place, "key": record.partition_key},
    )
