"""The contract between an operator and whatever runs it (a slot, a Python worker, the test harness).

Operators are pure (law 5): no Spark, no I/O, no clock. They see batches of records, watermarks and the epoch's
processing time, and push what they produce into their `Output`. All calls come from one thread.

Life of an operator in one partition::

    setup(context, output)            once; must not touch state
    open()                            once, after state was restored
    per epoch:
      process_time(now)               the epoch's processing time: due processing-time timers fire
      ( process_batch | process_watermark | process_idle )*
      process_time(now)               once more, so that timers registered for <= now fire
      end_epoch()                     emit what was held back for the whole epoch
      prepare_commit(); make_durable()    sinks only
    end_of_input()                    once, when all inputs of a bounded job have ended: before the +inf watermark
    process_watermark(MAX_WATERMARK)  the rest of that epoch follows
    close()

An epoch that fails is rolled back by the runner (state, timers) and replayed on the same operator instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from headwater.common.connector import OutputFiles
from headwater.common.ids import MIN_WATERMARK

if TYPE_CHECKING:
    from headwater.state.keyed_backend import KeyedStateBackend
    from headwater.state.operator_backend import OperatorStateBackend


class Output(Protocol):
    """Receives an operator's results: for the next operators of the chain, or for edges out of the stage.

    `timestamps` is None when no record of the batch has a timestamp; otherwise it is as long as `values` and may hold
    None for single records. The receiver owns both lists, and all in them that can change, after the call. Whoever goes
    on holding a record, such as the function that made it, emits a copy (`headwater.operators.results`).
    """

    def emit(self, values: list[Any], timestamps: list[int | None] | None) -> None: ...

    def emit_side(self, tag_id: str, values: list[Any], timestamps: list[int | None] | None) -> None: ...

    def emit_watermark(self, watermark: int) -> None: ...

    def emit_idle(self, idle: bool) -> None: ...


@dataclass
class OperatorContext:
    """What an operator may know about its partition and job. The runner makes it and passes it to `setup`."""

    uid: str
    name: str
    partition: int
    parallelism: int
    max_parallelism: int
    job_id: str = "job"
    job_name: str = "job"
    attempt: int = 0
    keyed_backend: KeyedStateBackend | None = None
    """State and timers of the current key. None: the operator is not keyed."""
    operator_backend: OperatorStateBackend | None = None
    """Non-keyed list and broadcast state. Always set in a slot and in the harness."""
    batch_mode: bool = False
    """BATCH: aggregations emit only their final value, at the end of input."""
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Any = None
    output_files: OutputFiles | None = None
    """Of a sink, if the job has checkpoint storage."""
    epoch: int = 0
    """The current epoch. The runner sets it before the first call of each epoch."""
    attempt_id: str = "0"
    """Unique per epoch attempt, for the names of sinks' files. Set with `epoch`."""
    processing_time_ms: int = 0
    """The epoch's `now`. `process_time` sets it."""
    watermark: int = MIN_WATERMARK
    """The operator's current watermark. The operator base class sets it."""


class Operator(ABC):
    """One operator of a chain, in one partition."""

    context: OperatorContext
    output: Output

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Set the context and the output. Called once, before any other call."""
        self.context = context
        self.output = output

    def open(self) -> None:
        """Prepare for records. State may be read from here on. Calls the user function's `open`."""

    def read_ahead(self, values: list[Any]) -> None:
        """Called before `process_batch(values)`: the operator may read the state of all these records at once."""

    @abstractmethod
    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        """Process records of one input, in order. The lists, and the records in them, belong to the operator."""

    def process_watermark(self, watermark: int) -> None:
        """Event time has reached `watermark`, the minimum over all inputs. It never goes back.

        Emit what is due first, then pass the watermark on: call `super().process_watermark(watermark)` last.
        """
        self.context.watermark = watermark
        self.output.emit_watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        """All inputs are idle, or (False) no longer are."""
        self.output.emit_idle(idle)

    def process_time(self, now_ms: int) -> None:
        """Processing time is now `now_ms`; fire due processing-time timers."""
        self.context.processing_time_ms = now_ms

    def next_processing_timer(self) -> int | None:
        """Return the time of the earliest processing-time timer, or None: the driver runs an epoch then."""
        return None

    def next_event_timer(self) -> int | None:
        """Return the watermark at which the operator emits next, as far as it knows: for people who wait for that."""
        return None

    def end_of_input(self) -> None:
        """All inputs have ended. Emit what the operator held back until the end."""

    def end_epoch(self) -> None:
        """All input of the epoch was processed and its watermark has been set; emit what the operator held back for it.

        Called in every epoch, the last one included (after the +inf watermark), in topological order: what it emits
        reaches the next operators before their own `end_epoch`, and the next stages in the same epoch. In stage 0, each
        split counts as an epoch. `prepare_commit` follows.

        An operator may defer its watermark until here: it overrides `process_watermark` to set `context.watermark`
        without emitting it, and emits it here, behind its output. It then defers `process_idle` too, or its output may
        be late for an operator with other inputs. It must hold nothing when this returns, nor after `abort_epoch`.
        """

    def prepare_commit(self) -> list[Any]:
        """Return the committables of the epoch that ends now. Only sinks have any."""
        return []

    def make_durable(self) -> None:
        """See that the committables can survive a power cut. Called after `prepare_commit`; touches no state."""

    def abort_epoch(self) -> None:
        """Give the current epoch up. The backends roll back state; drop everything else that the epoch left."""

    def close(self) -> None:
        """Close the operator. Called last. Calls the user function's `close`."""
