"""When a slot runs Python's garbage collector, which finds reference cycles."""

from __future__ import annotations

import gc
import time

FULL_COLLECTION_EVERY = 200
"""Epochs between two full garbage collections."""

_MAX_PAUSE = 16


class GarbageCollection:
    """Collects between epochs. Within an epoch, collections would scan the state again and again.

    A collection scans all objects made since the last one that are still alive; with much state, that is most of what
    the epoch wrote. While collections find nothing they become rarer, down to every sixteenth epoch. If functions leave
    cycles behind, there is one after each epoch.
    """

    def __init__(self) -> None:
        self._epochs = 0
        self._pause = 1
        self._due = 1
        self._pause_ms = 0.0

    def begin_epoch(self) -> None:
        """Disable collection during the epoch."""
        gc.disable()

    def state_loaded(self) -> None:
        """The loaded state lives long: exempt it from garbage collection."""
        gc.collect()
        gc.freeze()

    def epoch_ended(self) -> None:
        """Collect if a collection is due."""
        started = time.perf_counter()
        self._epochs += 1
        if self._epochs % FULL_COLLECTION_EVERY == 0:
            gc.collect()
        elif self._epochs >= self._due:
            found = gc.collect(0)
            self._pause = 1 if found else min(2 * self._pause, _MAX_PAUSE)
            self._due = self._epochs + self._pause
        self._pause_ms += (time.perf_counter() - started) * 1000

    def take_pause_ms(self) -> float:
        """Return how long collections have taken since the last call."""
        taken, self._pause_ms = self._pause_ms, 0.0
        return taken
