"""Tells sources, in the driver, which positions a durable checkpoint holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from headwater.checkpoint.manifest import Manifest
from headwater.common.connector import Source
from headwater.runtime.background import Background
from headwater.runtime.job.source_progress import SplitSourceProgress

log = logging.getLogger(__name__)


class SourceNotices:
    """Calls `Source.checkpoint_committed` beside the epochs. The coordinator's thread owns it.

    If a source takes longer than the next checkpoint, only the newest positions are told: they contain the others.
    """

    def __init__(self, sources: Sequence[SplitSourceProgress], background: Background) -> None:
        self._sources = sources
        self._told = [source for source in sources if _listens(source.source)]
        self._background = background
        self._queue: Executor | None = None
        self._lock = threading.Lock()
        self._waiting: dict[int, dict[str, Any]] = {}  # {source: positions that nobody has told it}

    def committed(self, manifest: Manifest) -> None:
        """The checkpoint is durable, and its output visible."""
        for source in self._told:
            positions = source.committed_positions(manifest)
            if not positions:
                continue
            with self._lock:
                self._waiting[source.spec.id] = {**self._waiting.get(source.spec.id, {}), **positions}
            if self._queue is None:
                self._queue = self._background.queue("source-notices")
            self._queue.submit(self._tell, source)

    def _tell(self, source: SplitSourceProgress) -> None:
        with self._lock:
            positions: Mapping[str, Any] | None = self._waiting.pop(source.spec.id, None)
        if positions is None:
            return
        try:
            source.source.checkpoint_committed(positions)
        except Exception as error:
            log.warning("source '%s' was told of a checkpoint, and raised: %s", source.spec.name, error)

    def close(self) -> None:
        """Wait until all is told, then let the sources go."""
        if self._queue is not None:
            self._queue.shutdown(wait=True)
        for source in self._sources:
            try:
                source.source.close()
            except Exception as error:
                log.warning("source '%s' cannot be closed: %s", source.spec.name, error)


def _listens(source: Source) -> bool:
    return type(source).checkpoint_committed is not Source.checkpoint_committed
