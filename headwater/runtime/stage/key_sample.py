"""Finds the keys that come up far more often than others, from a small sample of the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from headwater.common.errors import short_repr
from headwater.runtime.epoch.figures import HotKey, KeySampling
from headwater.state.keys.key_groups import key_group

STRIDES = (61, 67, 71, 73)
"""One of so many records is looked at, in turn: the sample must not keep step with a pattern in the input."""
SAMPLE = 256
"""So many keys are counted together. Keys that come up once among them are forgotten."""
SHOWN = 5


class KeySample:
    """The sample of one keyed operator in one partition. An attempt that failed is sampled again: it is an estimate."""

    def __init__(self, key_of: Callable[[Any], Any], max_parallelism: int) -> None:
        self._key_of = key_of
        self._max_parallelism = max_parallelism
        self._skip = 0
        self._round = 0
        self._keys: list[Hashable] = []
        self._hits: dict[Hashable, float] = {}
        self._samples = 0.0
        self._changed = False

    def look_at(self, values: list[Any]) -> None:
        """Sample the records of a chunk, before anybody may change them."""
        if self._skip >= len(values):
            self._skip -= len(values)
            return
        stride = STRIDES[self._round % len(STRIDES)]
        chosen = values[self._skip :: stride]
        self._skip += len(chosen) * stride - len(values)
        self._round += 1
        try:
            self._keys += map(self._key_of, chosen)
        except Exception:  # what is wrong with a record is said where it is processed
            return
        if len(self._keys) >= SAMPLE:
            self._count()

    def _count(self) -> None:
        keys, self._keys = self._keys, []
        try:
            counted = Counter(keys)
        except Exception:  # a key that cannot be hashed, such as a list
            counted = Counter(map(repr, keys))
        self._hits = {key: hits / 2 for key, hits in self._hits.items() if hits >= 2}
        for key, hits in counted.items():
            if hits > 1:
                self._hits[key] = self._hits.get(key, 0.0) + hits
        self._samples = self._samples / 2 + len(keys)
        self._changed = True

    def take(self) -> KeySampling | None:
        """Return what is known, if that has changed since the last call."""
        if not self._changed:
            return None
        self._changed = False
        most = sorted(self._hits.items(), key=lambda each: -each[1])[:SHOWN]
        return KeySampling(self._samples, tuple(HotKey(short_repr(key), self._group(key), hits) for key, hits in most))

    def _group(self, key: Any) -> int:
        try:
            return key_group(key, self._max_parallelism)
        except Exception:
            return -1
