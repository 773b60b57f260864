"""Files as sources and sinks, at the module path where PyFlink has them."""

from headwater.datastream.connectors.bucket_assigner import BucketAssigner
from headwater.datastream.connectors.bulk_writers import BulkWriter, BulkWriterFactory, BulkWriters
from headwater.datastream.connectors.file_compaction import FileCompactor, FileCompactStrategy
from headwater.datastream.connectors.file_formats import BulkFormat, StreamFormat
from headwater.datastream.connectors.file_sink import FileSink
from headwater.datastream.connectors.file_source import FileSource, FileSourceBuilder
from headwater.datastream.connectors.part_files import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from headwater.datastream.connectors.record_readers import BadRecordPolicy

__all__ = [
    "BadRecordPolicy",
    "BucketAssigner",
    "BulkFormat",
    "BulkWriter",
    "BulkWriterFactory",
    "BulkWriters",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]
