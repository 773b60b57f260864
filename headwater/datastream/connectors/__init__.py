"""Where records come from and go to. As in PyFlink, some names are passed on from their own modules."""

from headwater.datastream.connectors.base import (
    CheckpointMoment,
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    ReusableSinkWriter,
    Selection,
    Sink,
    SinkWriter,
    Source,
    Split,
    SplitReader,
    TimedBatch,
    WriterContext,
)
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from headwater.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from headwater.datastream.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, KafkaSource, Semantic
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource

__all__ = [
    "BucketAssigner",
    "CheckpointMoment",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
    "ReusableSinkWriter",
    "RollingPolicy",
    "Selection",
    "Semantic",
    "Sink",
    "SinkWriter",
    "Source",
    "Split",
    "SplitReader",
    "StreamFormat",
    "TimedBatch",
    "WriterContext",
]
