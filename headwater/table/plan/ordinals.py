"""ORDER BY 2: a column by its place."""

from __future__ import annotations

from headwater.table.parser.ast import expressions as ex
from headwater.table.plan.context import BindContext


def ordinal(item: ex.SortItem, count: int, context: BindContext) -> int | None:
    """The place that `ORDER BY 2` means; None if the item is no number."""
    node = item.expression
    if not isinstance(node, ex.Number) or not node.text.isdigit():
        return None
    place = int(node.text)
    if not 1 <= place <= count:
        raise context.error(f"ORDER BY {place}: there are {count} columns", node.span)
    return place - 1
