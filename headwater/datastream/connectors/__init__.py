"""Where records come from and go to. As in PyFlink, files and numbers are passed on from their own modules."""

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
from headwater.datastream.connectors.number_seq import NumberSequenceSource

__all__ = [
    "BucketAssigner",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "NumberSequenceSource",
    "OutputFileConfig",
    "ReusableSinkWriter",
    "RollingPolicy",
    "Sink",
    "SinkWriter",
    "Source",
    "Split",
    "SplitReader",
    "StreamFormat",
    "TimedBatch",
    "WriterContext",
]
