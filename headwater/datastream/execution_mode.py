"""How a job is run: as a stream that may never end, or as a batch."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """STREAMING: results as they come. BATCH: final results, at the end. AUTOMATIC: BATCH if all sources end."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
