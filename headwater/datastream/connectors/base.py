"""What a source and a sink must be, for people who write their own (see `headwater.common.connector`)."""

from __future__ import annotations

from enum import Enum

from headwater.common.connector import (
    Committer,
    CommitterContext,
    ReusableSinkWriter,
    Sink,
    SinkWriter,
    Source,
    Split,
    SplitReader,
    TimedBatch,
    WriterContext,
    drain,
)

__all__ = [
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "ReusableSinkWriter",
    "Sink",
    "SinkWriter",
    "Source",
    "Split",
    "SplitReader",
    "TimedBatch",
    "WriterContext",
    "drain",
]


class DeliveryGuarantee(Enum):
    """What a sink promises about each record after failures."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
