"""The common part of all operator harnesses: one partition of one operator, its epochs, and its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headwater.common.errors import InvalidKeyError, PlanError, short_repr
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.output_tag import OutputTag
from headwater.operators.base import Operator, OperatorContext
from headwater.operators.type_check import check_state_types
from headwater.operators.user_function import KeyedOperator
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.keys.frozen_keys import frozen
from headwater.state.keys.key_groups import key_group, key_group_range
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import Section
from headwater.testing.clock import ManualClock
from headwater.testing.recorded_output import EmittedIdle, EmittedWatermark, Record, RecordedOutput, Step

_UID = "harness"


@dataclass(frozen=True)
class OperatorSnapshot:
    """What one partition of one operator would persist at the end of an epoch. Picklable."""

    epoch: int
    watermark: int
    sections: tuple[Section, ...]
    committables: tuple[Any, ...]
    """The committables that a sink prepared in the epoch."""


class OperatorHarness:
    """One partition of one operator. Usable as a context manager, which closes it.

    `snapshot()` ends an epoch and returns what a job would persist; a second harness can `restore` it. `fail_epoch()`
    simulates a process that dies during an epoch.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        keyed: bool,
        name: str = "operator",
        partition: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        clock: ManualClock | None = None,
        batch_mode: bool = False,
        job_parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.operator = operator
        self.clock = clock if clock is not None else ManualClock()
        self._output = RecordedOutput()
        self._key_groups = key_group_range(partition, max_parallelism, parallelism)
        has_keys = keyed or isinstance(operator, KeyedOperator)
        self._keyed_backend = HeapKeyedStateBackend(_UID, max_parallelism, self._key_groups) if has_keys else None
        self._operator_backend = OperatorStateBackend(_UID)
        self.context = OperatorContext(
            uid=_UID,
            name=name,
            partition=partition,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            keyed_backend=self._keyed_backend,
            operator_backend=self._operator_backend,
            batch_mode=batch_mode,
            job_parameters=dict(job_parameters or {}),
            epoch=1,
            attempt_id="1-0",
            processing_time_ms=self.clock.now_ms,
        )
        self._opened = False
        self._committed_steps = 0
        self._failed_attempts = 0

    # -- life cycle ---------------------------------------------------------------------------------------------------

    def restore(self, *snapshots: OperatorSnapshot) -> Self:
        """Start from `snapshots`. Call it before anything else.

        From snapshots of several partitions, this harness takes the key groups that it owns.
        """
        if self._opened:
            raise PlanError("restore() must come before the first record; make a new harness for the restored operator")
        for snapshot in snapshots:
            self.context.epoch = max(self.context.epoch, snapshot.epoch + 1)
            self.context.watermark = max(self.context.watermark, snapshot.watermark)
            self._watermark_at_commit = self.context.watermark
            for section in snapshot.sections:
                if section.key_group < 0:
                    self._operator_backend.load_section(section)
                elif self._keyed_backend is not None and section.key_group in self._key_groups:
                    self._keyed_backend.load_section(section)
        self.context.attempt = 1
        return self

    def open(self) -> None:
        """Open the operator and begin the first epoch. The first call that needs it does this."""
        if self._opened:
            return
        self._opened = True
        self.operator.setup(self.context, self._output)
        self.operator.open()
        self._begin_epoch()
        self.operator.process_time(self.clock.now_ms)

    def snapshot(self) -> OperatorSnapshot:
        """End the epoch and begin the next one."""
        self.open()
        self.operator.process_time(self.clock.now_ms)
        self.operator.end_epoch()
        committables = tuple(self.operator.prepare_commit())
        self.operator.make_durable()
        check_state_types(self.context)
        sections = [*self._operator_backend.full_sections()]
        if self._keyed_backend is not None:
            sections += self._keyed_backend.full_sections()
        for backend in self._backends():
            backend.commit_epoch(cut=True)
            backend.checkpoint_completed()
        taken = OperatorSnapshot(self.context.epoch, self.context.watermark, tuple(sections), committables)
        self._watermark_at_commit = self.context.watermark
        self._committed_steps = len(self._output.steps)
        self.context.epoch += 1
        self._begin_epoch()
        self.operator.process_time(self.clock.now_ms)
        return taken

    def end_epoch(self) -> None:
        """End the epoch and begin the next one, as `snapshot` does: the operator emits what it held back for it."""
        self.snapshot()

    def fail_epoch(self) -> None:
        """Give up the current epoch: state, timers and output go back to the last `snapshot`."""
        self.open()
        self.operator.abort_epoch()
        for backend in self._backends():
            backend.rollback_epoch()
        del self._output.steps[self._committed_steps :]
        self.context.watermark = self._watermark_at_commit
        self._failed_attempts += 1
        self._begin_epoch()
        self.operator.process_time(self.clock.now_ms)

    def end_input(self) -> None:
        """End the input: the operator emits what it held back until then, and gets MAX_WATERMARK.

        The epoch goes on: `end_epoch` ends it.
        """
        self.open()
        self.operator.end_of_input()
        self.operator.process_watermark(MAX_WATERMARK)

    def close(self) -> None:
        """Close the operator and the user's function."""
        if self._opened:
            self.operator.close()
            self._opened = False

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- input --------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Advance event time to `watermark`."""
        self.open()
        if watermark < self.context.watermark:
            raise ValueError(f"the watermark is {self.context.watermark} and cannot go back to {watermark}")
        self.operator.process_watermark(watermark)

    def process_idle(self, idle: bool = True) -> None:
        """All inputs are idle, or no longer are."""
        self.open()
        self.operator.process_idle(idle)

    def set_processing_time(self, now_ms: int) -> None:
        """Turn the clock to `now_ms`; due processing-time timers fire."""
        self.open()
        self.clock.set(now_ms)
        self.operator.process_time(now_ms)

    def advance_processing_time(self, by_ms: int) -> None:
        """Advance the clock by `by_ms`; due processing-time timers fire."""
        self.set_processing_time(self.clock.now_ms + by_ms)

    # -- output -------------------------------------------------------------------------------------------------------

    def get_output(self) -> list[Any]:
        """The values of the main output, in order."""
        return [step.value for step in self._output.steps if isinstance(step, Record) and step.tag_id is None]

    def get_output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """As `get_output`, each value with its timestamp."""
        steps = self._output.steps
        return [(step.value, step.timestamp) for step in steps if isinstance(step, Record) and step.tag_id is None]

    def get_side_output(self, tag: OutputTag | str) -> list[Any]:
        """The values of one side output, in order."""
        tag_id = tag if isinstance(tag, str) else tag.tag_id
        return [step.value for step in self._output.steps if isinstance(step, Record) and step.tag_id == tag_id]

    def get_watermarks(self) -> list[int]:
        """The watermarks that were emitted, in order."""
        return [step.watermark for step in self._output.steps if isinstance(step, EmittedWatermark)]

    def is_idle(self) -> bool:
        """Return True if the operator last emitted that it is idle."""
        said = [step.idle for step in self._output.steps if isinstance(step, EmittedIdle)]
        return bool(said) and said[-1]

    def get_steps(self) -> list[Step]:
        """All that was emitted, in the order it was emitted."""
        return list(self._output.steps)

    def clear_output(self) -> None:
        """Forget what was emitted so far."""
        self._output.steps.clear()
        self._committed_steps = 0

    # -- state --------------------------------------------------------------------------------------------------------

    def num_event_time_timers(self) -> int:
        """How many event-time timers are set, over all keys."""
        return 0 if self._keyed_backend is None else len(self._keyed_backend.event_timers)

    def num_processing_time_timers(self) -> int:
        """How many processing-time timers are set, over all keys."""
        return 0 if self._keyed_backend is None else len(self._keyed_backend.processing_timers)

    def num_keyed_state_entries(self) -> int:
        """How many entries keyed state has, over all states and keys."""
        return 0 if self._keyed_backend is None else self._keyed_backend.number_of_entries()

    # -----------------------------------------------------------------------------------------------------------------

    _watermark_at_commit = MIN_WATERMARK

    def _begin_epoch(self) -> None:
        self.context.attempt_id = f"{self.context.epoch}-{self._failed_attempts}"
        self.context.processing_time_ms = self.clock.now_ms
        for backend in self._backends():
            backend.begin_epoch()
        if self._keyed_backend is not None:
            self._keyed_backend.watermark = self.context.watermark

    def _backends(self) -> list[Any]:
        return [self._operator_backend] + ([] if self._keyed_backend is None else [self._keyed_backend])

    def _check_route(self, key_of: Callable[[Any], Any], values: list[Any]) -> None:
        """Raise for records that the shuffle before a keyed operator would refuse, or send to another partition."""
        for value in values:
            try:
                key = frozen(key_of(value))
            except Exception:
                continue  # the operator's own error is better
            try:
                group = key_group(key, self.context.max_parallelism)
            except InvalidKeyError as error:
                raise InvalidKeyError(f"operator '{self.context.name}': {error}; record: {short_repr(value)}") from None
            if group not in self._key_groups:
                raise InvalidKeyError(
                    f"key {short_repr(key)} has key group {group}, which is not one of partition "
                    f"{self.context.partition} of {self.context.parallelism}; record: {short_repr(value)}"
                )
