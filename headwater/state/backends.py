"""Keyed state backends by name."""

from __future__ import annotations

from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.keyed_backend import KeyedStateBackend

HEAP: Final = "heap"
ROCKSDB: Final = "rocksdb"

_NAMES = {HEAP: HEAP, "hashmap": HEAP, ROCKSDB: ROCKSDB}
"""'hashmap' is Flink's name for the heap backend."""


def backend_kind(name: str) -> str:
    """Return `HEAP` or `ROCKSDB`. Raises `ConfigurationError` for any other name."""
    kind = _NAMES.get(name)
    if kind is None:
        raise ConfigurationError(
            f"there is no state backend '{name}'; use '{HEAP}' (Flink calls it 'hashmap': state in memory) or "
            f"'{ROCKSDB}' (state that may be larger than memory)"
        )
    return kind


def make_keyed_backend(
    kind: str, uid: str, max_parallelism: int, key_groups: range, options: Any = None
) -> KeyedStateBackend:
    """Return an empty backend. `options` are `RocksDBOptions` for 'rocksdb' (None: the defaults); 'heap' has none."""
    if backend_kind(kind) == HEAP:
        return HeapKeyedStateBackend(uid, max_parallelism, key_groups)
    # Imported here: jobs with heap state must not load RocksDB.
    from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend

    return RocksDBKeyedStateBackend(uid, max_parallelism, key_groups, options)
