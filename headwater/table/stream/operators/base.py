"""What the operators of SQL on streams have in common.

An epoch is netted: an operator with state takes all changes of the epoch first, and hands on one difference between
before and after at its end, in `end_epoch`. Its watermark leaves after that. So downstream sees, per epoch, one
changelog and then the watermark; within an epoch the order of changes means nothing.

A row is late if the watermark at the *beginning* of the epoch had passed it (`watermark_before`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.operators.base import Operator, OperatorContext, Output
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes, concatenated, schema_of
from headwater.table.user.operators import kernels_in


class ChangesOperator(Operator):
    """An operator whose records are `Changes`. `columns` are those of its output."""

    def __init__(self, columns: Sequence[Column], zone: str = "UTC") -> None:
        self.columns = tuple(columns)
        self.zone = zone

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._user_kernels = kernels_in(self)
        for kernel in self._user_kernels:
            kernel.attach(context)

    def close(self) -> None:
        for kernel in self._user_kernels:
            kernel.detach()

    def frame(self, rows: int) -> Frame:
        """What kernels may know: the epoch's time, the watermark, the session's time zone."""
        context = self.context
        watermark = None if context.watermark == MIN_WATERMARK else context.watermark
        return Frame(rows, self.zone, context.processing_time_ms, watermark_ms=watermark)

    def emit(self, changes: Changes) -> None:
        if len(changes):
            self.output.emit([changes], None)

    @property
    def schema(self) -> pa.Schema:
        return schema_of(self.columns)


class EpochOperator(ChangesOperator):
    """Takes all changes of an epoch, then hands on the difference they make.

    Subclasses implement `finish`. It runs at the end of every epoch, also of one without changes: time may have passed.
    """

    drops_late = False
    """Whether it may drop rows because they are late. It then has a `LateDrop`."""
    keeps_late = False
    """Set from outside: late rows go to a side output, too."""

    def __init__(self, inputs: Sequence[Sequence[Column]], columns: Sequence[Column], zone: str = "UTC") -> None:
        super().__init__(columns, zone)
        self.inputs = tuple(tuple(each) for each in inputs)
        self.watermark_before = MIN_WATERMARK
        """The watermark when the epoch began. `context.watermark` is the one that holds at its end."""
        self._taken: list[list[Changes]] = [[] for _ in self.inputs]
        self._idle: bool | None = None
        self._attempt: tuple[int, str] | None = None

    @property
    def backend(self) -> KeyedStateBackend:
        assert self.context.keyed_backend is not None
        return self.context.keyed_backend

    def open(self) -> None:
        # A finished job ended at MAX_WATERMARK.
        self.watermark_before = self.context.watermark

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        self._taken[input_index].extend(values)

    def process_watermark(self, watermark: int) -> None:
        """Hold the watermark back until the end of the epoch: what the epoch gives comes before it."""
        self.context.watermark = watermark

    def process_idle(self, idle: bool) -> None:
        """Hold it back as the watermark: what the epoch gives must not be late where it meets other inputs."""
        self._idle = idle

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        attempt = (self.context.epoch, self.context.attempt_id)
        if attempt != self._attempt:
            # An attempt begins. The runner has set the watermark back if the one before failed.
            self._attempt = attempt
            self.watermark_before = self.context.watermark

    def end_epoch(self) -> None:
        taken = [
            concatenated(parts, schema_of(columns)) for parts, columns in zip(self._taken, self.inputs, strict=True)
        ]
        self._taken = [[] for _ in self.inputs]
        self.finish(taken)
        self.watermark_before = self.context.watermark
        if self.context.watermark > MIN_WATERMARK:
            self.output.emit_watermark(self.context.watermark)
        if self._idle is not None:
            self.output.emit_idle(self._idle)
            self._idle = None

    @abstractmethod
    def finish(self, taken: list[Changes]) -> None:
        """Bring state up to date with the epoch's changes, one `Changes` per input, and emit what that changes."""

    def abort_epoch(self) -> None:
        self._taken = [[] for _ in self.inputs]
        self._idle = None

    @property
    def ended(self) -> bool:
        """All input has ended: this is the last epoch."""
        return self.context.watermark == MAX_WATERMARK
