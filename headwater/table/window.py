"""Windows of the Table API: `Tumble`, `Slide`, `Session`."""

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
