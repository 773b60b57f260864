"""What a checkpoint promises."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """headwater always gives EXACTLY_ONCE, also to jobs that ask for AT_LEAST_ONCE."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
