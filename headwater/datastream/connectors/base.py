"""What a source and a sink must be, for people who write their own (see `headwater.common.connector`)."""

from __future__ import annotations

from enum import Enum

from headwater.common.connector import (
    CheckpointMoment,
    Committer,
    CommitterContext,
    ReusableSinkWriter,
    Selection,
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
    "CheckpointMoment",
    "Committer",
    "CommitterContext",
    "DeliveryGuarantee",
    "ReusableSinkWriter",
    "Selection",
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
