"""Streams cut into windows: what happens in them. Names and signatures as in `pyflink.datastream.data_stream`.

Beyond PyFlink there are evictors, and a plain function may stand for a window function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from headwater.checkpoint.paths import validate_name
from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.time import DurationLike, to_millis
from headwater.common.typeinfo import TypeInformation, Types
from headwater.datastream.connectors.archive.closed_window import ToClosedWindow
from headwater.datastream.connectors.archive.sink import SeriesSink
from headwater.datastream.connectors.archive.store import Archive
from headwater.datastream.function_check import check_no_generator, checked_function
from headwater.datastream.no_effect import warn_no_effect
from headwater.operators.functions.plain import AggregateFunction, Function, ReduceFunction
from headwater.operators.functions.window import (
    AllWindowFunction,
    PlainAllWindowFunction,
    PlainProcessAllWindowFunction,
    PlainProcessWindowFunction,
    PlainWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from headwater.operators.window.aligned import AlignedWindowOperator
from headwater.operators.window.choice import make_window_operator, operator_class, uses_processing_time
from headwater.operators.window.settings import Aggregated, Buffered, Contents, Reduced, WindowSettings
from headwater.time.assigners import WindowAssigner
from headwater.time.assigners_aligned import AlignedWindows
from headwater.time.evictors import Evictor
from headwater.time.triggers import Trigger

if TYPE_CHECKING:
    from headwater.datastream.data_stream import DataStream, KeyedStream
    from headwater.datastream.stream_execution_environment import StreamExecutionEnvironment

F = TypeVar("F")
P = TypeVar("P")

_AGGREGATE_METHODS = ("create_accumulator", "add", "get_result", "merge")


class _WindowedBase(Generic[F, P]):
    """Settings and operations of both kinds of windowed stream. It is no operator: the last method adds one.

    `F` and `P` are the function classes for `apply` and for `process`.
    """

    _kind: ClassVar[str]
    _function_class: ClassVar[type[Any]]
    _plain_function_class: ClassVar[type[Any]]
    _process_class: ClassVar[type[Any]]
    _plain_process_class: ClassVar[type[Any]]

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeMismatchError(
                f"a window needs a WindowAssigner such as TumblingEventTimeWindows.of(Time.seconds(10)), "
                f"found {short_repr(window_assigner)}{_forgotten_call(window_assigner)}"
            )
        self._keyed_stream = keyed_stream
        self._window_assigner = window_assigner
        self._window_trigger: Trigger[Any, Any] | None = None
        self._window_evictor: Evictor | None = None
        self._allowed_lateness = 0
        self._late_data_output_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The declared type of the records that go into the windows."""
        return self._keyed_stream.get_type()

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows are evaluated, instead of the assigner's default trigger."""
        if not isinstance(trigger, Trigger):
            raise TypeMismatchError(
                f"trigger() expects a Trigger, found {short_repr(trigger)}{_forgotten_call(trigger)}"
            )
        self._window_trigger = trigger
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Remove elements before, or after, a window is evaluated. The window then keeps all its elements."""
        if not isinstance(evictor, Evictor):
            raise TypeMismatchError(
                f"evictor() expects an Evictor, found {short_repr(evictor)}{_forgotten_call(evictor)}"
            )
        self._window_evictor = evictor
        return self

    def allowed_lateness(self, time_ms: DurationLike) -> Self:
        """Keep event-time windows this long after their end: a record that comes until then makes them fire again."""
        self._allowed_lateness = to_millis(time_ms, "allowed_lateness()", minimum=0)
        if self._allowed_lateness and not self._window_assigner.is_event_time():
            warn_no_effect("allowed_lateness", f"{self._window_assigner!r} is not by event time, so nothing is late")
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that are too late for all their windows to this side output instead of dropping them.

        Read it with `get_side_output(output_tag)` on the stream that the window operation gives.
        """
        if not isinstance(output_tag, OutputTag):
            raise TypeMismatchError(f"side_output_late_data() expects an OutputTag, found {short_repr(output_tag)}")
        self._late_data_output_tag = output_tag
        return self

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: F | P | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Combine the records of each window into one as they come; `window_function` then gets that one."""
        contents = _reduced("reduce", reduce_function)
        self._check_window_function("reduce", window_function)
        return self._add(contents, window_function, output_type, keeps_type=window_function is None)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: F | P | None = None,
        accumulator_type: TypeInformation | list[TypeInformation] | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Add the records of each window to an accumulator as they come; `window_function` then gets its result."""
        contents = _aggregated("aggregate", aggregate_function)
        # Accumulators are pickled as they are: the type is checked only to find wrong calls.
        accumulator = Types.ROW(accumulator_type) if isinstance(accumulator_type, list) else accumulator_type
        if accumulator is not None and not isinstance(accumulator, TypeInformation):
            raise TypeMismatchError(
                f"aggregate(): accumulator_type must be a TypeInformation, found {short_repr(accumulator_type)}"
            )
        self._check_window_function("aggregate", window_function)
        return self._add(contents, window_function, output_type)

    def apply(self, window_function: F | Callable[..., Any], output_type: TypeInformation | None = None) -> DataStream:
        """Call `window_function(key, window, elements)` for each window; without the key if there is none.

        All elements are kept until then.
        """
        function = checked_function("window().apply", window_function, self._function_class)
        if not isinstance(function, self._function_class):
            function = self._plain_function_class(getattr(function, "apply", function))
        return self._add(Buffered(), function, output_type)

    def process(
        self,
        process_window_function: P | Callable[..., Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call `process_window_function(key, context, elements)` for each window; without the key if there is none.

        All elements are kept until then.
        """
        function = checked_function("window().process", process_window_function, self._process_class)
        if not isinstance(function, self._process_class):
            function = self._plain_process_class(getattr(function, "process", function))
        return self._add(Buffered(), function, output_type)

    def _check_window_function(self, method: str, window_function: Any) -> None:
        kinds = (self._function_class, self._process_class)
        if window_function is not None and not isinstance(window_function, kinds):
            raise TypeMismatchError(
                f"{method}(): window_function must be {' or '.join(map(_one, kinds))}, "
                f"found {short_repr(window_function)}{_forgotten_call(window_function)}"
            )

    def _add(
        self,
        contents: Contents,
        function: Any,
        output_type: TypeInformation | None,
        *,
        keeps_type: bool = False,
        whole_panes: bool = False,
    ) -> DataStream:
        assigner = self._window_assigner
        trigger = self._window_trigger
        if trigger is None:
            trigger = assigner.get_default_trigger(self.get_execution_environment())
        settings = WindowSettings(
            assigner=assigner,
            trigger=trigger,
            contents=contents,
            function=function,
            evictor=self._window_evictor,
            allowed_lateness_ms=self._allowed_lateness,
            late_data_tag=self._late_data_output_tag,
            whole_panes=whole_panes,
        )
        _check_combination(settings)
        functions = [getattr(contents, "function", None), function]
        stream = self._keyed_stream._add(
            "window",
            type(assigner).__name__,
            partial(make_window_operator, self._keyed_stream._key_selector, settings),
            next((each for each in reversed(functions) if each is not None), None),
            output_type,
            keeps_type=keeps_type and output_type is None,
            keyed=True,
            needs_ticks=uses_processing_time(settings),
        )
        described = ", ".join(type(each).__name__ for each in functions if each is not None)
        return stream.set_description(f"{self._kind}({assigner!r}, {type(trigger).__name__}, {described})")


class WindowedStream(_WindowedBase[WindowFunction[Any, Any, Any, Any], ProcessWindowFunction[Any, Any, Any, Any]]):
    """A keyed stream cut into windows, of each key for itself."""

    _kind = "Window"
    _function_class, _plain_function_class = WindowFunction, PlainWindowFunction
    _process_class, _plain_process_class = ProcessWindowFunction, PlainProcessWindowFunction

    def as_queryable_series(
        self, name: str, function: AggregateFunction | ReduceFunction | Callable[[Any, Any], Any], archive: Archive
    ) -> DataStream:
        """Archive the result of every window, exactly once, and make closed and open windows queryable as one series.

        `function` aggregates, or reduces, the records of a window, as `aggregate` and `reduce` do. Its results, and the
        keys, must be JSON. `name` identifies the series in queries and its state in savepoints: it is the operator's
        uid. The windows must be tumbling or sliding ones with their default trigger.

        Returns the closed windows, as `ClosedWindow` records, for whatever else is to be done with them.
        """
        if not isinstance(archive, Archive):
            raise TypeMismatchError(
                f"as_queryable_series() expects an archive such as SqliteArchive(path), found {short_repr(archive)}"
            )
        validate_name(name, "series")
        method = "as_queryable_series"
        adds_up = hasattr(function, "create_accumulator") or hasattr(function, "add")
        contents = _aggregated(method, function) if adds_up else _reduced(method, function)
        stream = self._add(contents, ToClosedWindow(), None, whole_panes=True)
        stream.uid(name).name(f"Series {name}")
        assert isinstance(self._window_assigner, AlignedWindows)
        sink = SeriesSink(name, archive, self._window_assigner)
        stream.sink_to(sink).uid(f"{name}-archive").name(f"Archive of {name}")
        return stream


class AllWindowedStream(_WindowedBase[AllWindowFunction[Any, Any, Any], ProcessAllWindowFunction[Any, Any, Any]]):
    """A stream that is not keyed, cut into windows. One partition does all the work."""

    _kind = "AllWindow"
    _function_class, _plain_function_class = AllWindowFunction, PlainAllWindowFunction
    _process_class, _plain_process_class = ProcessAllWindowFunction, PlainProcessAllWindowFunction

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(_the_only_key), window_assigner)


def _reduced(method: str, function: Any) -> Reduced:
    checked = checked_function(method, function, ReduceFunction)
    check_no_generator(method, checked)
    return Reduced(checked)


def _aggregated(method: str, function: Any) -> Aggregated:
    missing = [name for name in _AGGREGATE_METHODS if not callable(getattr(function, name, None))]
    if missing or isinstance(function, type):
        lacks = "" if isinstance(function, type) else f", which lacks {', '.join(missing)}"
        raise TypeMismatchError(
            f"{method}() expects an AggregateFunction, found {short_repr(function)}{lacks}{_forgotten_call(function)}"
        )
    return Aggregated(function)


def _check_combination(settings: WindowSettings) -> None:
    """Raise for what cannot work together."""
    if settings.merging and not settings.trigger.can_merge():
        raise PlanError(
            f"{type(settings.trigger).__name__} cannot be used with {settings.assigner!r}, whose windows merge: its "
            f"can_merge() is False; use another trigger, or implement can_merge() and on_merge()"
        )
    if settings.merging and settings.evictor is not None and not isinstance(settings.contents, Buffered):
        raise PlanError(
            f"an evictor with reduce() or aggregate() on {settings.assigner!r}: windows that merge would be reduced "
            f"anew from all their elements at every merge; use process() or apply(), which get the elements"
        )
    if settings.whole_panes and operator_class(settings) is not AlignedWindowOperator:
        raise PlanError(
            f"as_queryable_series() on {settings.assigner!r} with {type(settings.trigger).__name__}"
            f"{' and an evictor' if settings.evictor is not None else ''}: expected tumbling or sliding windows that "
            f"fire at their end (the default trigger, no evictor), because a window has one result in a series"
        )


def _forgotten_call(found: Any) -> str:
    if isinstance(found, type) and issubclass(found, WindowAssigner | Trigger | Evictor | Function):
        return "; did you forget to call it, or its of()?"
    return ""


def _one(cls: type) -> str:
    return f"{'an' if cls.__name__[0] in 'AEIOU' else 'a'} {cls.__name__}"


def _the_only_key(record: Any) -> int:
    return 0
