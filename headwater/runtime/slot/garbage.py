"""When a slot looks for garbage that reference counts do not find."""

from __future__ import annotations

import gc

FULL_COLLECTION_EVERY = 200
"""Epochs between two full garbage collections."""

_MAX_PAUSE = 16


class GarbageCollection:
    """Collects between epochs, and not within them: there it would look at the state again and again.

    A collection looks at all that was made since the last one and is still there, which with much state is most of what
    the epoch wrote. Where it finds nothing it is made more and more rarely, up to every sixteenth epoch: what was
    replaced in the meantime need not be looked at. Where functions leave cycles behind it is made after each epoch.
    """

    def __init__(self) -> None:
        self._epochs = 0
        self._pause = 1
        self._due = 1

    def begin_epoch(self) -> None:
        """No collection from now on."""
        gc.disable()

    def epoch_ended(self) -> None:
        """Collect, if it is time."""
        self._epochs += 1
        if self._epochs % FULL_COLLECTION_EVERY == 0:
            gc.collect()
        elif self._epochs >= self._due:
            found = gc.collect(0)
            self._pause = 1 if found else min(2 * self._pause, _MAX_PAUSE)
            self._due = self._epochs + self._pause
