"""What `Pattern.within(...)` measures."""

from __future__ import annotations

from enum import Enum


class WithinType(Enum):
    """As in Flink."""

    FIRST_AND_LAST = "first_and_last"
    """From the first to the last event of the match."""
    PREVIOUS_AND_CURRENT = "previous_and_current"
    """From the event before to each event of the step."""
