"""The unit of a snapshot: what one state of one operator holds for one key group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KEYED: Final = "keyed"
EVENT_TIMERS: Final = "event_timers"
PROCESSING_TIMERS: Final = "processing_timers"
OPERATOR: Final = "operator"
BROADCAST: Final = "broadcast"
"""As OPERATOR, but every partition has the same: when the job is rescaled it is copied, not dealt out."""

SECTION_KINDS: Final = frozenset({KEYED, EVENT_TIMERS, PROCESSING_TIMERS, OPERATOR, BROADCAST})

NO_KEY_GROUP: Final = -1


@dataclass(frozen=True, slots=True)
class Section:
    """One state (`name`) of one operator (`uid`) for one key group (-1 where there are no keys).

    `payload` is a pickle that only the state layer reads (see `payload.py`). Whether it replaces or changes what came
    before is said inside, entry by entry: sections are loaded in the order in which they were written.
    """

    uid: str
    kind: str
    name: str
    key_group: int
    payload: bytes
