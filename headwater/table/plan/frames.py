"""Frames of OVER: which rows around a row its window has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.table.parser.ast import expressions as ast
from headwater.table.plan.expressions import Frame, FrameBound, Literal, SortKey
from headwater.table.types import logical as t

if TYPE_CHECKING:
    from headwater.table.plan.expression_binder import ExpressionBinder

_ORDER = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")


def bind_frame(frame: ast.Frame, order: tuple[SortKey, ...], binder: ExpressionBinder) -> Frame:
    """Check that the bounds are constants of the right kind and in order."""
    start = _bound(frame, frame.start, order, binder)
    end = _bound(frame, frame.end, order, binder)
    wrong = _ORDER.index(start.kind) > _ORDER.index(end.kind)
    if wrong or start.kind == "UNBOUNDED FOLLOWING" or end.kind == "UNBOUNDED PRECEDING":
        raise binder.context.error(f"the window ends ({end.kind}) before it begins ({start.kind})", frame.span)
    return Frame(frame.unit, start, end)


def _bound(frame: ast.Frame, bound: ast.FrameBound, order: tuple[SortKey, ...], binder: ExpressionBinder) -> FrameBound:
    if bound.offset is None:
        return FrameBound(bound.kind)
    offset = binder.bind(bound.offset)
    if not isinstance(offset, Literal) or offset.value is None:
        raise binder.context.error(f"the bound of {frame.unit} is a constant", bound.span)
    if frame.unit == "ROWS":
        if not t.is_integer(offset.type) or offset.value < 0:
            raise binder.context.error("the bound of ROWS is a number of rows", bound.span)
        return FrameBound(bound.kind, offset)
    if len(order) != 1:
        raise binder.context.error("RANGE with a length needs exactly one ORDER BY column", bound.span)
    key = order[0].expression.type
    fits = t.is_interval(offset.type) if t.is_temporal(key) else t.is_numeric(key) and t.is_numeric(offset.type)
    if not fits:
        raise binder.context.error(f"RANGE of {offset.type.sql()} does not fit ORDER BY {key.sql()}", bound.span)
    return FrameBound(bound.kind, offset)
