"""Which key group a key is in, and which partition owns a key group.

A rescaled job hands state from partition to partition in key groups. A partition owns a contiguous range of them, and a
key stays in its group for ever (as long as `max_parallelism` does not change).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xxhash import xxh32_intdigest

from headwater.common.errors import InvalidKeyError
from headwater.common.types import Row
from headwater.state.keys.stable_hash import (
    hash_int64,
    hash_integer_tuples,
    hash_integers,
    pack_signed,
    stable_hash,
)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = [
    "MAX_PARALLELISM_LIMIT",
    "KeyRouter",
    "by_key_group",
    "groups_of_integers",
    "key_group",
    "key_group_range",
    "pairs_by_key_group",
    "partition_of_key_group",
    "stable_hash",
]

MAX_PARALLELISM_LIMIT = 2**15
"""Flink's upper bound for `max_parallelism`."""

_MEMO_LIMIT = 65_536
_WORTH_A_VECTOR = 64
"""From this many keys on, hashing them together is faster than one by one."""


def key_group(key: Any, max_parallelism: int) -> int:
    """Return the key group of `key`. Raises `InvalidKeyError` if it cannot be a key."""
    return stable_hash(key) % max_parallelism


def partition_of_key_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """The partition that owns `group`, by Flink's formula."""
    return group * parallelism // max_parallelism


def key_group_range(partition: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that `partition` owns: the inverse of `partition_of_key_group`."""
    start = -(-partition * max_parallelism // parallelism)
    end = -(-(partition + 1) * max_parallelism // parallelism)
    return range(start, end)


def by_key_group(keys: Iterable[Any], max_parallelism: int) -> dict[int, list[Any]]:
    """Return {key group: its keys}, in the order of the groups. For snapshots: only here are many keys hashed."""
    known = list(keys)
    hashes = hash_integers(known) if len(known) >= _WORTH_A_VECTOR else None
    group_of_each = (
        (hashes % max_parallelism).tolist()
        if hashes is not None
        else [key_group(key, max_parallelism) for key in known]
    )
    groups: dict[int, list[Any]] = {}
    for group, key in zip(group_of_each, known, strict=True):
        if group in groups:
            groups[group].append(key)
        else:
            groups[group] = [key]
    return dict(sorted(groups.items()))


def groups_of_integers(arrays: Sequence[NDArray[numpy.int64]], max_parallelism: int) -> NDArray[numpy.uint32] | None:
    """Return the key groups of integers (one array), or of tuples of them; None if not all can be hashed so."""
    if not len(arrays[0]):
        return arrays[0].astype("u4")
    hashes = hash_int64(arrays[0].copy()) if len(arrays) == 1 else hash_integer_tuples(arrays)
    return None if hashes is None else hashes % max_parallelism


def pairs_by_key_group(pairs: Iterable[Any], max_parallelism: int) -> dict[int, list[Any]]:
    """Like `by_key_group`, for (key, namespace) pairs. A key may have many pairs, but is hashed once."""
    pairs_of_key: dict[Any, list[Any]] = {}
    for pair in pairs:
        pairs_of_key.setdefault(pair[0], []).append(pair)
    groups = by_key_group(pairs_of_key, max_parallelism)
    return {group: [pair for key in members for pair in pairs_of_key[key]] for group, members in groups.items()}


class KeyRouter(dict[Any, int]):
    """`router[key]` is the partition of `key`. The dict remembers recent keys and computes the others.

    Equal keys share an entry and a hash, so the memo cannot change an answer. A key that can be changed raises
    `TypeError`, mostly Python's own, because a check per record would cost more than the lookup: use `partitions` for
    batches, which says what is wrong with which key.
    """

    __slots__ = ("_partition_of_group", "max_parallelism", "overflowed", "parallelism")

    def __init__(self, max_parallelism: int, parallelism: int) -> None:
        super().__init__()
        self.max_parallelism = max_parallelism
        self.parallelism = parallelism
        self._partition_of_group = [
            partition_of_key_group(group, max_parallelism, parallelism) for group in range(max_parallelism)
        ]
        self.overflowed = False
        """There are more keys than the dict remembers. `route_integers` is faster then, if it applies."""

    def __missing__(self, key: Any) -> int:
        # `stable_hash` inlined for int and str: with very many keys, this is all that routing costs.
        cls = key.__class__
        if cls is int:
            hashed = xxh32_intdigest(pack_signed(hash(key)))
        elif cls is str:
            hashed = xxh32_intdigest(key.encode("utf-8", "surrogatepass"))
        elif cls is Row:
            raise TypeError("a Row can be changed, so it is no key until it is frozen")
        else:
            hashed = stable_hash(key)
        if len(self) >= _MEMO_LIMIT:
            self.clear()
            self.overflowed = True
        partition = self[key] = self._partition_of_group[hashed % self.max_parallelism]
        return partition

    def route_integers(self, keys: Sequence[Any]) -> list[int] | None:
        """Return the partition of each key, computed together; None unless all are plain integers of 61 bits."""
        hashes = hash_integers(keys)
        if hashes is None:
            return None
        targets: list[int] = self._owners(hashes).tolist()
        return targets

    def route_int64(self, arrays: Sequence[NDArray[numpy.int64]]) -> NDArray[numpy.uint32] | None:
        """Like `route_integers`, of one array, which it changes, or of tuples of several."""
        hashes = hash_int64(arrays[0]) if len(arrays) == 1 else hash_integer_tuples(arrays)
        return None if hashes is None else self._owners(hashes)

    def _owners(self, hashes: NDArray[numpy.uint32]) -> NDArray[numpy.uint32]:
        # Flink's formula, as in `partition_of_key_group`.
        return hashes % self.max_parallelism * self.parallelism // self.max_parallelism

    def partitions(self, keys: Sequence[Any]) -> list[int]:
        """Return the partition of each key. Raises `InvalidKeyError` for the first that cannot be a key."""
        try:
            return [self[key] for key in keys]
        except InvalidKeyError:
            raise
        except TypeError:
            _raise_for_bad_key(keys)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return (KeyRouter, (self.max_parallelism, self.parallelism))


def _raise_for_bad_key(keys: Iterable[Any]) -> None:
    for key in keys:
        stable_hash(key)
