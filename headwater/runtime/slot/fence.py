"""Which attempts a slot serves: each attempt once, and none that is older than the newest it has seen."""

from __future__ import annotations

from headwater.runtime.epoch.messages import Attempt


class AttemptFence:
    """Refuses requests that come too late: from the relay of an abandoned attempt, or from a replaced driver."""

    def __init__(self) -> None:
        self.newest = (0, 0, 0)
        """`Attempt.order` of the newest admitted attempt."""

    def admits(self, attempt: Attempt) -> bool:
        """Admit `attempt` and return True if it is newer than all attempts before it."""
        if attempt.order() <= self.newest:
            return False
        self.newest = attempt.order()
        return True

    def is_newest(self, attempt: Attempt) -> bool:
        return attempt.order() == self.newest
