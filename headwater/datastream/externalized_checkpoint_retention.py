"""What happens to a job's checkpoint when the job is cancelled."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Whether the checkpoint survives a cancellation. A job that failed always keeps it."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
