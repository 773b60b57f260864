"""The operator that assigns timestamps and emits watermarks: behind a source, or where the user asks for it."""

from __future__ import annotations

from functools import partial

from headwater.common.config_options import AUTO_WATERMARK_INTERVAL, BAD_TIMESTAMPS_POLICY, MAX_TIMESTAMP_AHEAD
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.watermark_strategy import WatermarkKind, WatermarkStrategy
from headwater.graph.transformation import OperatorTransformation, Transformation, ancestors
from headwater.operators.timestamps import TimestampsAndWatermarksOperator


def does_something(strategy: WatermarkStrategy) -> bool:
    """False for `no_watermarks()` without an assigner: no operator is needed for it."""
    return strategy.kind is not WatermarkKind.NONE or strategy.timestamp_assigner is not None


def has_watermarks(stream: Transformation) -> bool:
    """True if something between the sources and `stream` makes watermarks, or says when it is idle."""
    return any(
        isinstance(node, OperatorTransformation)
        and (
            node.kind == "sql WatermarkAssigner"
            or (
                isinstance(node.function, WatermarkStrategy)
                and (node.function.kind is not WatermarkKind.NONE or node.function.idle_timeout_ms is not None)
            )
        )
        for node in ancestors(stream)
    )


def timestamps_node(
    upstream: Transformation, strategy: WatermarkStrategy, source_name: str | None = None
) -> OperatorTransformation:
    """Return the operator for `strategy`. It has the parallelism of its input, so that it does not mix splits."""
    check_strategy("assign_timestamps_and_watermarks", strategy)
    return OperatorTransformation(
        name="Timestamps/Watermarks",
        kind="timestamps and watermarks",
        upstreams=(upstream,),
        factory=partial(TimestampsAndWatermarksOperator, strategy, source_name=source_name),
        configured={
            "max_ahead_ms": MAX_TIMESTAMP_AHEAD,
            "bad_timestamps": BAD_TIMESTAMPS_POLICY,
            "watermark_interval_ms": AUTO_WATERMARK_INTERVAL,
        },
        function=strategy,
        output_type=upstream.output_type,
        parallelism_of_input=True,
        keeps_state_per_split=True,
        needs_ticks=strategy.idle_timeout_ms is not None,
    )


def check_strategy(method: str, strategy: object) -> None:
    """Raise unless `strategy` is one."""
    if not isinstance(strategy, WatermarkStrategy):
        raise TypeMismatchError(
            f"{method}() expects a WatermarkStrategy such as WatermarkStrategy.for_monotonous_timestamps(), "
            f"found {short_repr(strategy)}"
        )
