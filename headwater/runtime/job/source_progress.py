"""The progress of a source that is read in splits, in the driver: positions, budgets, event time."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest, SourceRecord, SplitRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.connector import Source, Split
from headwater.common.errors import ConfigurationError, HeadwaterError, UserCodeError
from headwater.common.ids import MIN_WATERMARK
from headwater.graph.plan import SourceSpec
from headwater.runtime.epoch.messages import SourceTask, SplitAck, SplitAssignment
from headwater.runtime.job.source_alignment import SourceAlignment

BURST_MS = 2_000
"""A rate-limited source that fell behind catches up on at most this much time."""


@dataclass
class _SplitState:
    split: Split
    position: bytes | None = None
    operator_state: bytes = b""
    watermarks: dict[str, int] = field(default_factory=dict)
    idle: bool = False
    """Nobody waits for its watermark."""


class SplitSourceProgress:
    """One source that is read in splits. Owned by the coordinator; not thread safe."""

    def __init__(
        self, spec: SourceSpec, layout: CheckpointLayout | None, alignment: SourceAlignment | None = None
    ) -> None:
        self.spec = spec
        self.alignment = alignment
        self.source: Source = spec.source
        self._layout = layout
        self._active: dict[str, _SplitState] = {}
        self._behind: dict[str, Split] = {}
        """Splits that come after others, which are not read to their end (`Source.read_after`)."""
        self._finished = FinishedSplits(layout, spec.uid) if layout is not None else None
        self._finished_ids: set[str] = set()
        self._ended: list[str] = []
        """Splits that finished since the last call of `record`."""
        self._last_positions: dict[str, tuple[int, bytes]] = {}
        """{split that finished: (epoch, position)}, until a checkpoint holds it."""
        self._watermarks: dict[str, int] = {}
        self._discovered_ms: int | None = None
        self._has_stages = type(self.source).continue_after is not Source.continue_after
        self._asked_to_continue_ms: int | None = None
        """When the source last said that it has no next stage yet."""
        self._rate_from_ms: int | None = None
        self._rate_emitted = 0
        self.records = 0
        self.next_epoch = 0
        """The epoch to plan next, for error texts."""

    # --- facts

    @property
    def exhausted(self) -> bool:
        """The source is bounded, and every split is read to its end."""
        if self._has_stages and self._asked_to_continue_ms is None:
            return False
        return self.source.bounded and self._discovered_ms is not None and not (self._active or self._behind)

    @property
    def open_splits(self) -> int:
        """How many splits are known and not read to their end. Any thread may ask."""
        return len(self._active) + len(self._behind)

    @property
    def all_opened(self) -> bool:
        """An epoch has opened every split: none has come since."""
        return all(state.position is not None for state in self._active.values())

    def can_read(self, now_ms: int) -> bool:
        """Return True if an epoch could read something now: there are splits, and the rate limit allows it."""
        return bool(self._active) and self._rate_allows(now_ms) > 0

    def next_read_ms(self, now_ms: int) -> int | None:
        """Return when an epoch can read something: now, or when the rate limit allows it; None: there are no splits."""
        if not self._active:
            return None
        if self.can_read(now_ms):
            return now_ms
        assert self.source.rate_per_second is not None and self._rate_from_ms is not None
        wait_ms = math.ceil((self._rate_emitted + 1) * 1000 / self.source.rate_per_second)
        return max(now_ms + 1, self._rate_from_ms + wait_ms)

    def next_discovery_ms(self) -> int | None:
        """Return when to look for new splits again; None: never, or not looked yet."""
        interval = self.source.discovery_interval_ms
        if interval is None or self._discovered_ms is None:
            return None
        return self._discovered_ms + interval

    def _rate_allows(self, now_ms: int) -> int:
        rate = self.source.rate_per_second
        if rate is None:
            return 1 << 62
        if self._rate_from_ms is None:
            self._rate_from_ms = now_ms
        due = int((now_ms - self._rate_from_ms) * rate / 1000) - self._rate_emitted
        most = max(1, int(rate * BURST_MS / 1000))
        if due > most:  # fell behind: forget the rest, so that a pause is not followed by a burst
            self._rate_emitted += due - most
            due = most
        return due

    # --- the epoch

    def discover(self, now_ms: int) -> None:
        """Look for new splits if it is time to."""
        due = self.next_discovery_ms()
        if self._discovered_ms is None or (due is not None and now_ms >= due):
            self._discover(now_ms, self.source.discover_splits)
        if self._has_stages and not self._active and self._may_ask_to_continue(now_ms):
            watermark_ms = max(self._watermarks.values(), default=MIN_WATERMARK)
            self._discover(
                now_ms,
                lambda parallelism, known: self.source.continue_after(
                    parallelism, known, None if watermark_ms == MIN_WATERMARK else watermark_ms
                ),
            )
            self._asked_to_continue_ms = None if self._active else now_ms

    def _may_ask_to_continue(self, now_ms: int) -> bool:
        """A source whose next stage had nothing is asked again as often as it looks for splits."""
        if self._asked_to_continue_ms is None:
            return True
        interval = self.source.discovery_interval_ms
        return not self.source.bounded and interval is not None and now_ms >= self._asked_to_continue_ms + interval

    def _discover(self, now_ms: int, look: Callable[[int, frozenset[str]], list[Split]]) -> None:
        finished = self._finished.ids().union(self._ended) if self._finished is not None else self._finished_ids
        known = frozenset((*self._active, *self._behind)) | finished
        try:
            found = look(self.spec.parallelism, known)
        except HeadwaterError:
            raise
        except Exception as error:
            raise UserCodeError.from_exception(error, self.spec.name, "discovery of splits", self.next_epoch) from error
        for split in found:
            if split.split_id in known:
                raise ConfigurationError(
                    f"source '{self.spec.name}' offered split '{split.split_id}' again; ids must be unique for ever"
                )
            self._behind[split.split_id] = split
        self._open_those_next()
        self._discovered_ms = now_ms

    def _open_those_next(self) -> None:
        """Read the splits whose predecessors have all been read to their end."""
        unread = {*self._active, *self._behind}
        for split_id, split in list(self._behind.items()):
            if unread.isdisjoint(self.source.read_after(split)):
                self._active[split_id] = _SplitState(self._behind.pop(split_id))

    def plan(
        self, first_index: int, budget: int, now_ms: int, *, final: bool, aligned: Mapping[str, int] | None = None
    ) -> list[SourceTask]:
        """Return the tasks of this source for one epoch. Without splits there is one task, which holds event time.

        `aligned` is {alignment group: the watermark that no split may be beyond}: a split that is must wait.
        """
        if not self._active:
            return [self.marker(first_index, final=final)]
        budget = min(budget, self._rate_allows(now_ms))
        waiting = self._beyond(aligned or {})
        reading = max(1, len(self._active) - len(waiting))
        share, extra = divmod(max(budget, 0), reading)
        width = min(self.spec.parallelism, len(self._active))
        assigned: list[list[SplitAssignment]] = [[] for _ in range(width)]
        # The remainder goes to different splits in each epoch: no split starves if there are more splits than budget.
        first = self.next_epoch % reading
        turn = 0
        for number, (split_id, state) in enumerate(self._active.items()):
            if split_id in waiting:
                assigned[number % width].append(self._assign(state, 0))
                continue
            gets_extra = (turn - first) % reading < extra
            turn += 1
            assigned[number % width].append(self._assign(state, share + int(gets_extra)))
        return [
            SourceTask(first_index + subtask, self.spec.id, subtask, tuple(splits))
            for subtask, splits in enumerate(assigned)
        ]

    def slowest_aligned(self) -> int | None:
        """The watermark of the slowest split that is not idle; None without alignment, or if there is no such split."""
        if self.alignment is None:
            return None
        return min(
            (self.alignment.watermark(state.watermarks) for state in self._active.values() if not state.idle),
            default=None,
        )

    def _beyond(self, aligned: Mapping[str, int]) -> set[str]:
        """The splits that must wait for slower ones of their alignment group."""
        if self.alignment is None or self.alignment.group not in aligned:
            return set()
        limit = aligned[self.alignment.group]
        return {
            split_id for split_id, state in self._active.items() if self.alignment.watermark(state.watermarks) > limit
        }

    def marker(self, index: int, *, final: bool) -> SourceTask:
        """Return a task that reads nothing and carries the event time of the whole source."""
        return SourceTask(index, self.spec.id, 0, marker=self._event_time(), exhausted=self.exhausted, final=final)

    def _event_time(self) -> dict[str, int]:
        """Return the watermarks of the slowest split that is not idle; without splits, the largest final watermarks."""
        if not self._active:
            return dict(self._watermarks)
        awake = [state for state in self._active.values() if not state.idle]
        slowest = min(
            awake or self._active.values(), key=lambda state: max(state.watermarks.values(), default=MIN_WATERMARK)
        )
        return dict(slowest.watermarks)

    def _assign(self, state: _SplitState, budget: int) -> SplitAssignment:
        position = None if state.position is None else pickle.loads(state.position)
        try:
            split = self.source.plan_read(state.split, position, budget)
        except HeadwaterError:
            raise
        except Exception as error:
            what = f"split {state.split.split_id}"
            raise UserCodeError.from_exception(error, self.spec.name, what, self.next_epoch) from error
        return SplitAssignment(split, state.position, budget, state.operator_state, state.watermarks)

    def apply(self, acks: Iterable[SplitAck], epoch: int) -> int:
        """Move to the positions that the epoch reached, and return its number of records. Once per accepted epoch."""
        self.next_epoch = epoch + 1
        ended: list[str] = []
        count = 0
        finals: list[dict[str, int]] = []
        for ack in acks:
            count += ack.records
            finals.append(ack.watermarks)
            state = self._active[ack.split_id]
            state.position, state.operator_state, state.watermarks = ack.position, ack.operator_state, ack.watermarks
            state.idle = ack.idle
            if ack.finished:
                ended.append(ack.split_id)
                self._last_positions[ack.split_id] = (epoch, ack.position)
                del self._active[ack.split_id]
        if ended:
            self._open_those_next()
        self._finished_ids.update(ended)
        self._ended += ended
        # Used only when no split is left: then the largest final watermark is that of the source.
        for watermarks in finals:
            for place, watermark in watermarks.items():
                self._watermarks[place] = max(self._watermarks.get(place, MIN_WATERMARK), watermark)
        self.records += count
        self._rate_emitted += count
        return count

    # --- persistence

    def record(self, epoch: int, attempt_id: str) -> SourceRecord:
        """Return the source's record for the manifest of `epoch`. May write a file that the record names."""
        splits = {
            split_id: SplitRecord(
                pickle.dumps(state.split.payload, 5), state.position, state.operator_state, details=state.watermarks
            )
            for split_id, state in self._active.items()
        }
        splits |= {split_id: SplitRecord(pickle.dumps(split.payload, 5)) for split_id, split in self._behind.items()}
        record = SourceRecord(splits, exhausted=self.exhausted, details=dict(self._watermarks))
        if self._finished is not None:
            record.finished_splits = self._finished.add(self._ended, epoch, attempt_id)
            self._ended = []
        return record

    def committed_positions(self, manifest: Manifest) -> dict[str, Any]:
        """Return {split id: position} of the durable checkpoint: of open splits, and of those that ended since then."""
        ended = {name: position for name, (epoch, position) in self._last_positions.items() if epoch <= manifest.epoch}
        for split_id in ended:
            del self._last_positions[split_id]
        record = manifest.sources.get(self.spec.uid)
        open_ones = {} if record is None else {name: split.position for name, split in record.splits.items()}
        found = {**open_ones, **ended}
        return {name: pickle.loads(position) for name, position in found.items() if position is not None}

    def restore(self, record: SourceRecord, now_ms: int) -> None:
        """Stand where `record` says. Called after `reset`."""
        assert self._layout is not None
        self._finished = FinishedSplits.restore(self._layout, self.spec.uid, record.finished_splits)
        splits = {split_id: Split(split_id, pickle.loads(split.payload)) for split_id, split in record.splits.items()}
        self._behind = {
            split_id: split
            for split_id, split in splits.items()
            if not splits.keys().isdisjoint(self.source.read_after(split))
        }
        self._active = {
            split_id: _SplitState(splits[split_id], split.position, split.operator_state, dict(split.details))
            for split_id, split in record.splits.items()
            if split_id not in self._behind
        }
        self._watermarks = dict(record.details)
        # A bounded source has been discovered for good; a watched one looks again at once.
        self._discovered_ms = now_ms if self.source.discovery_interval_ms is None else None

    def reset(self) -> None:
        """Forget all progress: the job goes back to its beginning."""
        self.__init__(self.spec, self._layout, self.alignment)  # type: ignore[misc]
