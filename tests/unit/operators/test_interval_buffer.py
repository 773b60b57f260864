"""The buffer of an interval join keeps and forgets the same on every backend."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from headwater.operators.join.interval_buffer import SCAN_LIMIT, IntervalBuffer
from headwater.state.backends import make_keyed_backend
from headwater.state.rocksdb.options import RocksDBOptions

RETENTION_MS = 50


def buffer_on(kind: str, directory: Path, outer: bool) -> tuple[Any, IntervalBuffer]:
    options = RocksDBOptions(directory=directory) if kind == "rocksdb" else None
    backend = make_keyed_backend(kind, "join", 16, range(16), options)
    backend.begin_epoch()
    return backend, IntervalBuffer(backend, 0, RETENTION_MS, 10, outer)


@pytest.mark.parametrize("outer", [False, True])
def test_both_backends_keep_and_forget_the_same(tmp_path: Path, outer: bool) -> None:
    dice = random.Random(7)
    both = [buffer_on(kind, tmp_path, outer) for kind in ("hashmap", "rocksdb")]
    for step in range(6 * SCAN_LIMIT):
        key, timestamp, now = dice.choice("ab"), step + dice.randrange(20), step
        seen = []
        for backend, buffer in both:
            backend.current_key = key
            found = buffer.between(key, timestamp - 30, timestamp + 30)
            buffer.add(key, timestamp, [step], matched=bool(found))
            if outer:
                for due, late_key, _ in list(backend.event_timers.pop_due(now)):
                    backend.current_key = late_key
                    found.append((due, (buffer.expire(late_key, due),)))
            else:
                buffer.forget(now)
            if step % 40 == 39:
                buffer.derive()
            seen.append(found)
        assert seen[0] == seen[1], step
    assert any(found for found in seen)
    for backend, _ in both:
        if hasattr(backend, "close"):
            backend.close()
