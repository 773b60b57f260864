"""Which attempts a slot serves: each once, and none that is older than one it has seen."""

from __future__ import annotations

from headwater.runtime.slot.protocol import Attempt


class AttemptFence:
    """Keeps out what wakes up late: a relay of an attempt that was given up, a driver that was replaced."""

    def __init__(self) -> None:
        self.newest = (0, 0, 0)
        """`Attempt.order` of the newest attempt that was let in."""

    def admits(self, attempt: Attempt) -> bool:
        """Let `attempt` in if it is newer than all before it."""
        if attempt.order() <= self.newest:
            return False
        self.newest = attempt.order()
        return True

    def is_newest(self, attempt: Attempt) -> bool:
        return attempt.order() == self.newest
