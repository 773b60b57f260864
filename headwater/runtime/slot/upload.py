"""Makes a slot's part of a checkpoint durable while the slot works on."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.runtime.background import Background
from headwater.runtime.epoch.messages import SnapshotPart

GRACE_SECONDS = 0.1
"""A slot waits this long for its part before it acknowledges without it. Writing to a local disk takes less, so the
checkpoint's output becomes visible without waiting for another epoch."""


class Upload:
    """Writes one part in the background. The part is already encoded, so it contains nothing of later epochs."""

    def __init__(
        self,
        token: str,
        write: Callable[[], SnapshotRef] | None,
        background: Background,
        *,
        whole: bool,
        sync_ms: float,
    ) -> None:
        self.token = token
        self._whole = whole
        self._sync_ms = sync_ms
        self._part: Future[SnapshotPart]
        if write is None:
            self._part = Future()
            self._part.set_result(SnapshotPart(token, whole=whole, sync_ms=sync_ms))
        else:
            self._part = background.start(f"upload-{token}", lambda: self._run(write))

    def _run(self, write: Callable[[], SnapshotRef]) -> SnapshotPart:
        started = time.perf_counter()
        ref: SnapshotRef | None = None
        error: str | None = None
        try:
            ref = write()
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        async_ms = (time.perf_counter() - started) * 1000
        return SnapshotPart(self.token, ref, error, self._whole, self._sync_ms, async_ms)

    def result(self, timeout: float | None) -> SnapshotPart | None:
        """Return the part, or None if it is not written after `timeout` seconds. `timeout` None waits for ever."""
        try:
            return self._part.result(timeout)
        except FutureTimeoutError:
            return None
