"""`x > ALL (query)` and its kin, as comparisons with the smallest and the largest value of the query."""

from __future__ import annotations

from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression

_ALIAS, _VALUE = "$quantified", "$value"
_EXTREME = {(">", "ALL"): "MAX", (">=", "ALL"): "MAX", ("<", "ALL"): "MIN", ("<=", "ALL"): "MIN"}
_EXTREME |= {(operator, "ANY"): "MIN" if of == "MAX" else "MAX" for (operator, _), of in _EXTREME.items()}


def without_quantifier(node: ex.Quantified) -> Expression:
    """The same truth value without a quantifier. Not for `= ANY` and `<> ALL`, which are IN and NOT IN.

    ALL: true of no rows, false if one row says so, unknown if not and a row is NULL. ANY: the other way round.
    """
    if (node.operator, node.quantifier) == ("<>", "ANY"):
        return ex.Unary("NOT", without_quantifier(ex.Quantified("=", node.operand, "ALL", node.query, span=node.span)))
    compared = _compared(node)
    is_all = node.quantifier == "ALL"
    decided = ex.Unary("NOT", compared) if is_all else compared
    rows, values = _of(node, "COUNT", ex.Star()), _of(node, "COUNT", ex.Name((_VALUE,)))
    return ex.Case(
        None,
        (
            ex.When(ex.Operation("=", rows, ex.Number("0")), ex.Boolean(is_all)),
            ex.When(decided, ex.Boolean(not is_all)),
            ex.When(ex.Operation(">", rows, values), ex.Null()),
        ),
        compared,
        span=node.span,
    )


def _compared(node: ex.Quantified) -> Expression:
    """Compared with the rows that are not NULL."""
    if node.operator == "=":
        ends = [ex.Operation("=", node.operand, _of(node, each, ex.Name((_VALUE,)))) for each in ("MIN", "MAX")]
        return ex.Operation("AND", *ends)
    extreme = _EXTREME[node.operator, node.quantifier]
    return ex.Operation(node.operator, node.operand, _of(node, extreme, ex.Name((_VALUE,))), span=node.span)


def _of(node: ex.Quantified, aggregate: str, argument: Expression) -> ex.Subquery:
    relation = ast.Aliased(ast.Derived(node.query), _ALIAS, (_VALUE,), span=node.span)
    item = ast.SelectItem(ex.Call((aggregate,), (argument,), span=node.span), span=node.span)
    return ex.Subquery(ast.Select((item,), relation, span=node.span), span=node.span)
