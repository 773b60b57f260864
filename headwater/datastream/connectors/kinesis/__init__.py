"""Kinesis: streams as a source, streams and Firehose as sinks. Needs `headwater[kinesis]`."""

from headwater.datastream.connectors.kinesis.record import KinesisDeserializationSchema, KinesisRecord
from headwater.datastream.connectors.kinesis.sink import (
    KinesisFirehoseSink,
    KinesisFirehoseSinkBuilder,
    KinesisStreamsSink,
    KinesisStreamsSinkBuilder,
    PartitionKeyGenerator,
)
from headwater.datastream.connectors.kinesis.source import (
    FlinkKinesisConsumer,
    KinesisStreamsSource,
    KinesisStreamsSourceBuilder,
)

__all__ = [
    "FlinkKinesisConsumer",
    "KinesisDeserializationSchema",
    "KinesisFirehoseSink",
    "KinesisFirehoseSinkBuilder",
    "KinesisRecord",
    "KinesisStreamsSink",
    "KinesisStreamsSinkBuilder",
    "KinesisStreamsSource",
    "KinesisStreamsSourceBuilder",
    "PartitionKeyGenerator",
]
