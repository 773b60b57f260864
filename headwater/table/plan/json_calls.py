"""Arguments of JSON functions: what stands between the words of their clauses, in a fixed order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import DataType, Expression
from headwater.table.plan.expressions import Literal, Rex, TypeWord
from headwater.table.types import logical as t

if TYPE_CHECKING:
    from headwater.table.plan.expression_binder import ExpressionBinder


def json_arguments(name: str, node: ast.Call, binder: ExpressionBinder) -> tuple[Rex, ...]:
    """The arguments of a JSON function, with a word or NULL for each clause that was left out."""
    arguments = binder.bind_all(node.arguments)
    match name:
        case "JSON_VALUE":
            returning = _returning(node, binder, t.VarCharType(length=2000))
            return (*arguments, returning, *_behaviour(node, "EMPTY", binder), *_behaviour(node, "ERROR", binder))
        case "JSON_QUERY":
            wrapper = _words(node, "WRAPPER") or "WITHOUT WRAPPER"
            empty = (_words(node, "EMPTY") or "NULL ON EMPTY").removesuffix(" ON EMPTY")
            error = (_words(node, "ERROR") or "NULL ON ERROR").removesuffix(" ON ERROR")
            return (*arguments, _word(wrapper.removesuffix(" WRAPPER")), _word(empty), _word(error))
        case "JSON_EXISTS":
            return (*arguments, _word((_words(node, "ERROR") or "FALSE ON ERROR").removesuffix(" ON ERROR")))
        case "JSON_OBJECT" | "JSON_OBJECTAGG":
            return (_word((_words(node, "NULL") or "NULL ON NULL").removesuffix(" ON NULL")), *arguments)
        case "JSON_ARRAY" | "JSON_ARRAYAGG":
            return (_word((_words(node, "NULL") or "ABSENT ON NULL").removesuffix(" ON NULL")), *arguments)
    return arguments


def _word(text: str) -> Literal:
    return Literal(t.CharType(length=len(text), nullable=False), text)


def _words(node: ast.Call, end: str) -> str | None:
    return next((clause.words for clause in node.clauses if clause.words.endswith(end)), None)


def _returning(node: ast.Call, binder: ExpressionBinder, default: t.LogicalType) -> TypeWord:
    for clause in node.clauses:
        if clause.words == "RETURNING" and isinstance(clause.value, DataType):
            type_ = binder.bind_type(clause.value)
            return TypeWord(type_, type_)
    return TypeWord(default, default)


def _behaviour(node: ast.Call, when: str, binder: ExpressionBinder) -> tuple[Rex, Rex]:
    for clause in node.clauses:
        if clause.words == f"DEFAULT ON {when}" and isinstance(clause.value, Expression):
            return _word("DEFAULT"), binder.bind(clause.value)
        if clause.words.endswith(f" ON {when}"):
            return _word(clause.words.removesuffix(f" ON {when}")), Literal(t.NULL, None)
    return _word("NULL"), Literal(t.NULL, None)
