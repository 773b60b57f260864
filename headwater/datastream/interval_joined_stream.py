"""`keyed.interval_join(other).between(lower, upper).process(function)`: Flink's Java API, which PyFlink lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.time import DurationLike, to_millis
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.connected_streams import add_two_input_node, check_partner
from headwater.datastream.function_check import checked_function
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.functions.join import ProcessJoinFunction
from headwater.operators.join.interval_join import IntervalJoinOperator, IntervalJoinSettings

if TYPE_CHECKING:
    from headwater.datastream.data_stream import DataStream, KeyedStream


class IntervalJoin:
    """Two keyed streams without an interval yet."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        check_partner("interval_join", left, right)
        if right._key_selector is None:
            raise TypeMismatchError("interval_join() expects a keyed stream; call key_by(...) on the other one, too")
        self._left = left
        self._right = right

    def between(self, lower_bound: DurationLike, upper_bound: DurationLike) -> IntervalJoined:
        """A left and a right record match if `left + lower_bound <= right <= left + upper_bound`, by timestamps.

        Bounds may be negative: between(-5 s, 0) looks back. Milliseconds as an int, a Time, a Duration or a timedelta.
        """
        lower_ms = to_millis(lower_bound, "between(): lower_bound", minimum=None)
        upper_ms = to_millis(upper_bound, "between(): upper_bound", minimum=None)
        return IntervalJoined(self._left, self._right, IntervalJoinSettings(lower_ms, upper_ms))


class IntervalJoined:
    """Two keyed streams and their interval. Each setter returns a new object."""

    def __init__(self, left: KeyedStream, right: KeyedStream, settings: IntervalJoinSettings) -> None:
        self._left = left
        self._right = right
        self._settings = settings

    def lower_bound_exclusive(self) -> IntervalJoined:
        """`left + lower_bound` itself does not match."""
        return self._with(lower_ms=self._settings.lower_ms + 1)

    def upper_bound_exclusive(self) -> IntervalJoined:
        """`left + upper_bound` itself does not match."""
        return self._with(upper_ms=self._settings.upper_ms - 1)

    def left_outer(self) -> IntervalJoined:
        """Also emit left records without a match, with None as the right one. Not in Flink."""
        return self._with(left_outer=True)

    def right_outer(self) -> IntervalJoined:
        """Also emit right records without a match, with None as the left one. Not in Flink."""
        return self._with(right_outer=True)

    def full_outer(self) -> IntervalJoined:
        """`left_outer()` and `right_outer()`. Not in Flink."""
        return self._with(left_outer=True, right_outer=True)

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send left records behind the watermark to this side output instead of dropping them."""
        return self._with(left_late_tag=_tag("side_output_left_late_data", output_tag))

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send right records behind the watermark to this side output instead of dropping them."""
        return self._with(right_late_tag=_tag("side_output_right_late_data", output_tag))

    def process(
        self,
        process_join_function: ProcessJoinFunction | Callable[[Any, Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Process each pair with its context. A plain function gets `(left, right, ctx)` and yields results."""
        function = checked_function("process", process_join_function, ProcessJoinFunction)
        left, right = self._left, self._right
        return add_two_input_node(
            (left, right),
            OperatorTransformation(
                name="Interval Join",
                kind="interval join",
                upstreams=(left._transformation, right._transformation),
                factory=partial(
                    IntervalJoinOperator, left._key_selector, right._key_selector, self._settings, function
                ),
                function=function,
                keyed=True,
            ),
            output_type,
        )

    def _with(self, **changes: Any) -> IntervalJoined:
        return IntervalJoined(self._left, self._right, replace(self._settings, **changes))


def _tag(method: str, output_tag: OutputTag) -> str:
    if not isinstance(output_tag, OutputTag):
        raise TypeMismatchError(f"{method}() expects an OutputTag, found {short_repr(output_tag)}")
    return output_tag.tag_id
