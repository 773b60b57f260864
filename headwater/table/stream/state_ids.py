"""State is found again by what it means, not by its place in a plan.

A column's meaning is the expression that computes it, down to the columns of tables. Rows mean the tables they come
from and all that adds, drops or joins rows; projections do not count. The uid of an operator with state is a digest of
its kind, of what its input means, and of its keys: so another column in SELECT, another alias or another order of
columns leaves the state where it is. The digests are persisted: change what goes into them only with a new version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from headwater.common.errors import SqlError
from headwater.table.plan.expressions import (
    AggregateCall,
    ColumnRef,
    FunctionCall,
    Grouping,
    Literal,
    Required,
    Rex,
    SortKey,
    TypeWord,
    WindowCall,
)

_VERSION = "2"


def digest(*parts: object) -> str:
    text = "\x1f".join((_VERSION, *(str(part) for part in parts)))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def meaning(rex: Rex, columns: Mapping[int, str]) -> str:
    """What an expression computes, as text. `columns` has the meaning of each column by id."""
    match rex:
        case ColumnRef():
            return columns.get(rex.column.id, f"?{rex.column.name}")
        case Literal():
            return f"{rex.type.with_nullable(True).sql()}:{rex.value!r}"
        case TypeWord():
            return rex.target.with_nullable(True).sql()
        case Required():
            return meaning(rex.operand, columns)
        case FunctionCall() if rex.name in ("AND", "OR"):
            return f"{rex.name}({','.join(sorted(meaning(each, columns) for each in _operands(rex, rex.name)))})"
        case FunctionCall():
            arguments = ",".join(meaning(each, columns) for each in rex.arguments)
            return f"{rex.name}({arguments}):{rex.type.with_nullable(True).sql()}"
        case AggregateCall():
            arguments = ",".join(meaning(each, columns) for each in rex.arguments)
            where = "" if rex.filter is None else f" where {meaning(rex.filter, columns)}"
            order = "" if not rex.order_by else f" order {keys_meaning(rex.order_by, columns)}"
            return f"{rex.name}({'distinct ' if rex.distinct else ''}{arguments}{where}{order})"
        case WindowCall():
            over = ",".join(meaning(each, columns) for each in rex.partition_by)
            return (
                f"{meaning(rex.call, columns)} over({over} order {keys_meaning(rex.order_by, columns)} {rex.frame!r})"
            )
        case Grouping():
            return f"grouping({','.join(meaning(each, columns) for each in rex.arguments)})"
    raise SqlError(f"{type(rex).__name__} is no expression of one row; a rule should have replaced it")


def keys_meaning(keys: tuple[SortKey, ...], columns: Mapping[int, str]) -> str:
    return ",".join(
        f"{meaning(key.expression, columns)} {'desc' if key.descending else 'asc'} {key.nulls_first}" for key in keys
    )


def _operands(rex: Rex, name: str) -> list[Rex]:
    """The operands of nested AND or OR, whose order means nothing."""
    if isinstance(rex, FunctionCall) and rex.name == name:
        return [operand for each in rex.arguments for operand in _operands(each, name)]
    return [rex]
