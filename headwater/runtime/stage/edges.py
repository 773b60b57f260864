"""The writing end of an edge: routes records to target partitions and cuts them into chunks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from typing import Any

from headwater.common.errors import (
    HeadwaterError,
    InvalidKeyError,
    SerializationError,
    TypeMismatchError,
    UserCodeError,
    short_repr,
)
from headwater.common.ids import MIN_WATERMARK
from headwater.graph.plan import Exchange, InputSpec
from headwater.runtime.epoch.chunk import EVERY, FrameKind, Header, encode_frame, encode_records
from headwater.state.keys.frozen_keys import FrozenKeyOf
from headwater.state.keys.key_groups import KeyRouter
from headwater.state.keys.stable_hash import stable_hash

CHUNK_RECORDS = 4096
"""A target's buffer is sent when it has this many records."""

Emit = Callable[[int, bytes], None]
"""Sends a frame: `(target partition in the destination stage, or EVERY; frame)`."""

Timestamps = list[int | None] | None


class EdgeWriter:
    """Writes the records of one partition or split to one edge.

    `edge` combines the id of the consuming operator and the position of the input (see `edge_id`). Frames for a stage
    beyond the next one pass through the relays in between.
    """

    def __init__(
        self,
        *,
        edge: int,
        spec: InputSpec,
        dest_stage: int,
        dest_parallelism: int,
        max_parallelism: int,
        partition: int,
        operator_name: str,
        emit: Emit,
    ) -> None:
        self.edge = edge
        self._dest_stage = dest_stage
        self._parallelism = dest_parallelism
        self._partition = partition
        self._operator_name = operator_name
        self._emit = emit
        self._spec = spec
        self._route = self._choose_route(spec, max_parallelism)
        self.epoch = 0
        self.begin_channel("", MIN_WATERMARK)

    @property
    def calls_user_code(self) -> bool:
        """A key selector or a partitioner says where records go. If it fails, nothing of the batch is written."""
        return self._spec.exchange in (Exchange.HASH, Exchange.CUSTOM)

    def begin_channel(self, channel: str, watermark: int) -> None:
        """Start the epoch (or the next split) on a channel whose watermark is `watermark`."""
        self._channel = channel
        self._seq = 0
        self.records = 0
        self.bytes = 0
        self.watermark = watermark
        self.idle = False
        self._turn = self._partition % self._parallelism
        self._values: list[list[Any]] = [[] for _ in range(self._parallelism)]
        self._timestamps: list[list[int | None] | None] = [None] * self._parallelism
        self._chunk_watermark = [watermark] * self._parallelism

    # --- Output, as far as an edge needs it

    def write(self, values: list[Any], timestamps: Timestamps) -> None:
        """Route a batch."""
        if not values:
            return
        self.idle = False
        self._route(values, timestamps)
        self.records += len(values)

    def advance(self, watermark: int) -> None:
        """Set the producer's watermark. Later records go into new chunks."""
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        for target in range(self._parallelism):
            self._flush(target)

    def end_channel(self, *, ended: bool) -> None:
        """End the epoch: send the buffered records, and tell every target the channel's last watermark."""
        for target in range(self._parallelism):
            self._flush(target)
        header = Header(
            FrameKind.END, self._dest_stage, EVERY, self.edge, self._channel, self._seq, self.watermark,
            idle=self.idle, ended=ended,
        )  # fmt: skip
        self._emit(EVERY, encode_frame(header))

    # --- routes, one per exchange; each must be deterministic, so that a replay gives the same chunks

    def _choose_route(self, spec: InputSpec, max_parallelism: int) -> Callable[[list[Any], Timestamps], None]:
        if spec.exchange is Exchange.BROADCAST:
            return self._to_all
        if spec.exchange is Exchange.SPLIT:
            assert spec.splitter is not None
            self._split, self._max_parallelism = spec.splitter, max_parallelism
            return self._in_parts
        if self._parallelism == 1 and spec.exchange is not Exchange.HASH:
            return self._to_own
        if spec.exchange is Exchange.HASH:
            assert spec.key_selector is not None
            self._key_of = spec.key_selector
            self._router = KeyRouter(max_parallelism, self._parallelism)
            return self._by_key
        return {
            Exchange.FORWARD: self._to_own,
            Exchange.GLOBAL: self._to_first,
            Exchange.REBALANCE: self._in_turn,
            Exchange.RESCALE: self._in_turn,
            Exchange.SHUFFLE: self._scattered,
            Exchange.CUSTOM: self._by_partitioner,
        }[spec.exchange]

    def _to_own(self, values: list[Any], timestamps: Timestamps) -> None:
        self._append(self._partition % self._parallelism, values, timestamps)

    def _to_first(self, values: list[Any], timestamps: Timestamps) -> None:
        self._append(0, values, timestamps)

    def _to_all(self, values: list[Any], timestamps: Timestamps) -> None:
        for target in range(self._parallelism):
            self._append(target, values, timestamps)

    def _in_turn(self, values: list[Any], timestamps: Timestamps) -> None:
        n, first = self._parallelism, self._turn
        for offset in range(min(n, len(values))):
            target = (first + offset) % n
            self._append(target, values[offset::n], timestamps[offset::n] if timestamps else None)
        self._turn = (first + len(values)) % n

    def _scattered(self, values: list[Any], timestamps: Timestamps) -> None:
        # A linear congruential generator: it looks random, but is the same in every replay of the epoch.
        targets = []
        state = self._turn + 12345
        for _ in values:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            targets.append((state >> 8) % self._parallelism)
        self._turn = state
        self._distribute(targets, values, timestamps)

    def _by_key(self, values: list[Any], timestamps: Timestamps) -> None:
        remaining = iter(values)
        key_of, router = self._key_of, self._router
        try:
            if self._parallelism == 1:
                for value in remaining:  # all go to partition 0, but a bad key must raise
                    router[key_of(value)]
                self._append(0, values, timestamps)
                return
            if router.overflowed:
                integers = router.route_integers(list(map(key_of, values)))
                if integers is not None:
                    self._distribute(integers, values, timestamps)
                    return
            if timestamps is None and self._parallelism == 2:
                first: list[Any] = []
                second: list[Any] = []
                add = (first.append, second.append)
                for value in remaining:
                    add[router[key_of(value)]](value)
                self._append(0, first, None)
                self._append(1, second, None)
                return
            targets = [router[key_of(value)] for value in remaining]
        except Exception as error:
            # A key that can be changed is frozen, and from then on all are. Nothing of the batch is sent yet.
            if isinstance(error, TypeError) and not isinstance(key_of, FrozenKeyOf):
                self._key_of = FrozenKeyOf(key_of)
                self._by_key(values, timestamps)
                return
            index = len(values) - length_hint(remaining) - 1
            made = self._key_error(error, values, index)
            made.batch_index = index
            raise made from error
        self._distribute(targets, values, timestamps)

    def _in_parts(self, values: list[Any], timestamps: Timestamps) -> None:
        for place, value in enumerate(values):
            timestamp = None if timestamps is None else [timestamps[place]]
            for target, part in self._split(value, self._max_parallelism, self._parallelism):
                self._append(target, [part], timestamp)

    def _by_partitioner(self, values: list[Any], timestamps: Timestamps) -> None:
        partitioner, key_of = self._spec.partitioner, self._spec.key_selector
        assert partitioner is not None
        remaining = iter(values)
        try:
            if key_of is None:
                targets = [partitioner(value, self._parallelism) for value in remaining]
            else:
                targets = [partitioner(key_of(value), self._parallelism) for value in remaining]
        except Exception as error:
            index = len(values) - length_hint(remaining) - 1
            raise self._user_error(self._operator_name, values[index], error) from error
        for target, value in zip(targets, values, strict=True):
            if type(target) is not int or not 0 <= target < self._parallelism:
                raise HeadwaterError(
                    f"partitioner of operator '{self._operator_name}' returned {target!r} for record {value!r}; "
                    f"expected an int from 0 to {self._parallelism - 1}"
                )
        self._distribute(targets, values, timestamps)

    def _distribute(self, targets: list[int], values: list[Any], timestamps: Timestamps) -> None:
        n = self._parallelism
        buckets: list[list[Any]] = [[] for _ in range(n)]
        if timestamps is None:
            for target, value in zip(targets, values, strict=True):
                buckets[target].append(value)
            for target, bucket in enumerate(buckets):
                self._append(target, bucket, None)
            return
        times: list[list[int | None]] = [[] for _ in range(n)]
        for target, value, timestamp in zip(targets, values, timestamps, strict=True):
            buckets[target].append(value)
            times[target].append(timestamp)
        for target in range(n):
            self._append(target, buckets[target], times[target])

    # --- chunks

    def _append(self, target: int, values: list[Any], timestamps: Timestamps) -> None:
        if not values:
            return
        buffered = self._values[target]
        times = self._timestamps[target]
        if timestamps is not None and times is None:
            times = self._timestamps[target] = [None] * len(buffered)
        if times is not None:
            times.extend(timestamps if timestamps is not None else repeat(None, len(values)))
        buffered.extend(values)
        if len(buffered) >= CHUNK_RECORDS:
            self._flush(target)

    def _flush(self, target: int) -> None:
        values = self._values[target]
        if values:
            try:
                payload = encode_records(values, self._timestamps[target])
            except Exception as error:
                raise self._unpicklable(values, error) from error
            header = Header(
                FrameKind.DATA, self._dest_stage, target, self.edge, self._channel, self._seq,
                self._chunk_watermark[target], len(values),
            )  # fmt: skip
            self._seq += 1
            self.bytes += len(payload)
            self._values[target] = []
            self._timestamps[target] = None
            self._emit(target, encode_frame(header, payload))
        self._chunk_watermark[target] = self.watermark

    # --- errors

    def _key_error(self, error: Exception, values: list[Any], index: int) -> HeadwaterError:
        record = values[index]
        error = self._invalid_key(record) or error
        if isinstance(error, InvalidKeyError):
            return InvalidKeyError(
                f"key_by before operator '{self._operator_name}', record {short_repr(record)}: {error}"
            )
        if isinstance(error, TypeMismatchError):  # the key does not fit its declared type
            return TypeMismatchError(f"key_by before operator '{self._operator_name}', epoch {self.epoch}: {error}")
        return self._user_error(f"key_by before {self._operator_name}", record, error)

    def _invalid_key(self, record: Any) -> InvalidKeyError | None:
        """Return why the record's key cannot be a key; None if it can. The router itself does not check, for speed."""
        try:
            stable_hash(self._key_of(record))
        except InvalidKeyError as error:
            return error
        except Exception:  # the selector itself raised
            return None
        return None

    def _user_error(self, where: str, record: Any, error: Exception) -> UserCodeError:
        return UserCodeError.from_exception(error, where, record, self.epoch)

    def _unpicklable(self, values: list[Any], error: Exception) -> SerializationError:
        for value in values:
            try:
                encode_records([value], None)
            except Exception as cause:
                return SerializationError(
                    f"a record on its way to operator '{self._operator_name}' cannot be pickled: {short_repr(value)} "
                    f"({type(value).__name__}): {cause}; emit plain data (tuples, Rows, dataclasses) between operators"
                )
        return SerializationError(
            f"records on their way to operator '{self._operator_name}' cannot be pickled: {error}"
        )
