"""Where records come from and go to. As in PyFlink, files, Kafka and numbers are passed on from their own modules."""

from headwater.datastream.connectors.base import (
    Committer,
    CommitterContext,
    DeliveryGuarantee,
    ReusableSinkWriter,
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
from headwater.datastream.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, KafkaSource, Semantic
from headwater.datastream.connectors.number_seq import NumberSequenceSource

__all__ = [
    "BucketAssigner",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "ReusableSinkWriter",
    "RollingPolicy",
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
