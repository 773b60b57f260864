"""The unit of a snapshot: one state of one operator for one key group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KEYED: Final = "keyed"
EVENT_TIMERS: Final = "event_timers"
PROCESSING_TIMERS: Final = "processing_timers"
OPERATOR: Final = "operator"
BROADCAST: Final = "broadcast"
"""Like OPERATOR, but the same in every partition: a rescaled job copies it and does not deal it out."""


NO_KEY_GROUP: Final = -1


@dataclass(frozen=True, slots=True)
class Section:
    """One state (`name`) of one operator (`uid`) for one key group (-1 if there are no keys).

    `payload` is a pickle that only the state layer reads (see `payload.py`). Each entry in it replaces or changes an
    earlier one, so sections must be loaded in the order in which they were written.
    """

    uid: str
    kind: str
    name: str
    key_group: int
    payload: bytes
