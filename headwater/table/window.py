"""Windows of the Table API: `Tumble`, `Slide`, `Session` group rows, `Over` looks at the rows before each row."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from headwater.common.errors import SqlError
from headwater.table.expression import Expression
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast.base import Expression as Node


@dataclass(frozen=True)
class GroupWindow:
    """A window with its name: kind, time column, lengths in the order of the function of SQL."""

    kind: str
    time: Node
    lengths: tuple[Node, ...]
    name: str


@dataclass(frozen=True)
class _OnTime:
    kind: str
    lengths: tuple[Node, ...]
    time: Node

    def alias(self, alias: str) -> GroupWindow:
        return GroupWindow(self.kind, self.time, self.lengths, alias)


@dataclass(frozen=True)
class _Sized:
    kind: str
    lengths: tuple[Node, ...]

    def on(self, time_field: Expression) -> _OnTime:
        """The column of time."""
        return _OnTime(self.kind, self.lengths, time_field.node)


class Tumble:
    """Windows of one length, one after another."""

    @staticmethod
    def over(size: Expression) -> _Sized:
        return _Sized("TUMBLE", (_length(size),))


class Slide:
    """Windows of one length that begin at every `every`."""

    @dataclass(frozen=True)
    class _Over:
        size: Node

        def every(self, slide: Expression) -> _Sized:
            return _Sized("HOP", (_length(slide), self.size))

    @staticmethod
    def over(size: Expression) -> Slide._Over:
        return Slide._Over(_length(size))


class Session:
    """Windows that end after a gap without rows."""

    @staticmethod
    def with_gap(gap: Expression) -> _Sized:
        return _Sized("SESSION", (_length(gap),))


@dataclass(frozen=True)
class OverWindow:
    """The rows that an aggregate with `.over(col(name))` sees, for `Table.over_window`."""

    name: str
    spec: ex.WindowSpec


_CURRENT = ex.FrameBound("CURRENT ROW")


@dataclass(frozen=True)
class _Ordered:
    """Partitions with an order. Without `preceding`, a row sees all rows up to its time."""

    partition: tuple[Node, ...]
    order: tuple[ex.SortItem, ...]

    def preceding(self, preceding: Expression) -> _Preceding:
        """How far back: `UNBOUNDED_ROW`, `UNBOUNDED_RANGE`, `row_interval(n)` or a time such as `lit(5).minutes`."""
        return _Preceding(self, *_bound(preceding, "PRECEDING"))

    def alias(self, alias: str) -> OverWindow:
        return OverWindow(alias, ex.WindowSpec(None, self.partition, self.order))


@dataclass(frozen=True)
class _Preceding:
    window: _Ordered
    unit: str
    start: ex.FrameBound

    def following(self, following: Expression) -> _Framed:
        """How far ahead: `CURRENT_ROW` or `CURRENT_RANGE`, as `preceding` counts."""
        unit, end = _bound(following, "FOLLOWING")
        if unit != self.unit:
            raise SqlError(f"preceding() counts {self.unit}, following() {unit}: both count rows, or both time")
        return _Framed(self, end)

    def alias(self, alias: str) -> OverWindow:
        return _over_window(self.window, self.unit, self.start, _CURRENT, alias)


@dataclass(frozen=True)
class _Framed:
    preceding: _Preceding
    end: ex.FrameBound

    def alias(self, alias: str) -> OverWindow:
        return _over_window(self.preceding.window, self.preceding.unit, self.preceding.start, self.end, alias)


@dataclass(frozen=True)
class _Partitioned:
    partition: tuple[Node, ...]

    def order_by(self, order_by: Expression) -> _Ordered:
        """The column of time, or in batch mode any column."""
        return _Ordered(self.partition, (order_by.order or ex.SortItem(order_by.node),))


class Over:
    """`Over.partition_by(col("a")).order_by(col("ts")).preceding(row_interval(2)).following(CURRENT_ROW).alias("w")`"""

    @staticmethod
    def partition_by(*partition_by: Expression) -> _Partitioned:
        return _Partitioned(tuple(each.node for each in partition_by))

    @staticmethod
    def order_by(order_by: Expression) -> _Ordered:
        return _Partitioned(()).order_by(order_by)


def _over_window(window: _Ordered, unit: str, start: ex.FrameBound, end: ex.FrameBound, name: str) -> OverWindow:
    return OverWindow(name, ex.WindowSpec(None, window.partition, window.order, ex.Frame(unit, start, end)))


def _bound(given: Expression, side: str) -> tuple[str, ex.FrameBound]:
    """The unit, ROWS or RANGE, and the bound."""
    match given.node:
        case ex.Symbol("UNBOUNDED ROW" | "UNBOUNDED RANGE" as word):
            return ("ROWS" if word.endswith("ROW") else "RANGE"), ex.FrameBound(f"UNBOUNDED {side}")
        case ex.Symbol("CURRENT ROW" | "CURRENT RANGE" as word):
            return ("ROWS" if word.endswith("ROW") else "RANGE"), _CURRENT
        case ex.Call(("ROW_INTERVAL",), (rows,)):
            return "ROWS", ex.FrameBound(side, rows)
        case ex.Interval():
            return "RANGE", ex.FrameBound(side, given.node)
    raise SqlError(
        f"{side.lower()}({given!r}): expected row_interval(n), a time such as lit(5).minutes, UNBOUNDED_ROW,"
        " UNBOUNDED_RANGE, CURRENT_ROW or CURRENT_RANGE"
    )


def _length(expression: Expression) -> Node:
    if not isinstance(expression.node, ex.Interval):
        raise SqlError("the length of a window is a time: lit(10).minutes")
    return expression.node


def window_call(window: GroupWindow, part: str = "") -> Node:
    """The window as a call of SQL: TUMBLE(time, size), or TUMBLE_START(time, size)."""
    name = f"{window.kind}_{part}" if part else window.kind
    return ex.Call((name,), (window.time, *window.lengths))


def resolve_window_columns(node: Node, window: GroupWindow) -> Node:
    """Replace `w.start`, `w.end` and `w.rowtime` by the functions of SQL that mean them."""
    if isinstance(node, ex.Field) and node.operand == ex.Name((window.name,)) and node.name.startswith("$"):
        return window_call(window, node.name[1:].upper())
    changes: dict[str, object] = {}
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            changes[each.name] = resolve_window_columns(value, window)
        elif isinstance(value, tuple) and value and all(isinstance(item, Node) for item in value):
            changes[each.name] = tuple(resolve_window_columns(item, window) for item in value)
    return dataclasses.replace(node, **changes) if changes else node  # type: ignore[arg-type]
