"""What users implement. Pure interfaces, with the names and signatures of `pyflink.datastream.functions`.

Wherever one of these is expected, a plain function or lambda with the arguments of its one abstract method does too.
An instance is pickled into every partition; create connections and caches in `open`, not in `__init__`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.operators.functions.runtime_context import RuntimeContext
    from headwater.operators.functions.time_domain import TimeDomain
    from headwater.operators.functions.timer_service import TimerService
    from headwater.state.api import ListState
    from headwater.state.descriptors import ListStateDescriptor


class Function(ABC):  # noqa: B024 - as in PyFlink, it is a base without an abstract method of its own
    """Base of all user functions."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per partition before the first record, and again if an epoch had to be rolled back."""

    def close(self) -> None:
        """Called once at the end, and before each `open` that follows a rollback."""


class MapFunction(Function):
    """One record in, one out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the record that takes the place of `value`."""


class FlatMapFunction(Function):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that take the place of `value`. None means none."""


class FilterFunction(Function):
    """Keeps or drops records."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether to keep `value`. Must not change it."""


class ReduceFunction(Function):
    """Combines two records of one key into one of the same kind."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine what was reduced so far (`value1`) with the next record (`value2`)."""


class AggregateFunction(Function):
    """Adds records to an accumulator, whose type may differ from both the records' and the result's."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A new, empty accumulator."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with `value` added; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result as of now. Must leave the accumulator usable."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator with the content of both. Neither argument is used afterwards."""


class KeySelector(Function):
    """Returns the key of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key: hashable, not NaN, and always the same for the same record."""


class Partitioner(Function):
    """Sends records to partitions by a rule of its own."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the partition for `key`, from 0 up to `num_partitions - 1`."""


class SourceFunction(Function):
    """A source written in Python: produces records from `run`. For `add_source`; it is not resumable mid-way."""

    @abstractmethod
    def run(self) -> Iterable[Any]:
        """Yield the records. Called again from the start after a failure: it must then yield the same records."""

    def cancel(self) -> None:
        """Stop producing. Called when the job is cancelled."""


class SinkFunction(Function):
    """A sink written in Python, for `add_sink`. At least once: a replayed epoch calls `invoke` again."""

    @abstractmethod
    def invoke(self, value: Any) -> None:
        """Take one record."""


class ProcessFunction(Function):
    """Sees each record with its timestamp and the clocks; emits by `yield`."""

    class Context(ABC):
        """Valid only during the call it is handed to: the object is reused for the next record."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The clocks. Timers can be set only on a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event timestamp, or that of the timer that fires; None where the stream has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Process one record: yield results, and `output_tag, result` for a side output."""


class KeyedProcessFunction(Function):
    """Sees each record of a keyed stream with the state and timers of its key; emits by `yield`."""

    class Context(ABC):
        """Valid only during the call it is handed to: the object is reused for the next record."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record, or of the timer that fires."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The clocks, and the timers of the current key."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event timestamp, or that of the timer that fires; None where the stream has none."""

    class OnTimerContext(Context):
        """What `on_timer` gets."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the timer followed."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Process one record: yield results, and `output_tag, result` for a side output."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer of the current key is due. Results get the timer's timestamp."""
        return None


class FunctionInitializationContext(ABC):
    """What a `CheckpointedFunction` gets to reach its operator state."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return True if the state may have content: the job was resumed, or an epoch was rolled back."""

    @abstractmethod
    def get_operator_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The non-keyed list of this partition."""


class CheckpointedFunction(ABC):
    """Mix-in for functions with non-keyed state. An operator whose function is one runs in a slot.

    headwater's addition to PyFlink's interfaces, after Flink's Java interface of this name. A list state is durable as
    it is: `snapshot_state` is only needed by a function that keeps data outside of it between records.
    """

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the list states and load from them. Called right before each `open`, so also after a rollback."""

    def snapshot_state(self, context: FunctionInitializationContext) -> None:
        """Write what the function keeps outside of state into the list states. Called at the end of each epoch."""
