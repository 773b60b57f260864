"""Which clock a timer follows."""

from __future__ import annotations

from enum import Enum


class TimeDomain(Enum):
    """EVENT_TIME follows the watermark, PROCESSING_TIME the `now` that the driver stamps on each epoch."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
