"""Expressions as text that parses to the same tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import DataType, Expression
from headwater.table.parser.ast.queries import GroupingSets
from headwater.table.parser.printing.names import data_type, dotted, function_name, quoted, text

if TYPE_CHECKING:
    from headwater.table.parser.ast.base import Query, Relation


class ExpressionPrinter:
    """Prints expressions. Queries inside them are printed by the functions it is given."""

    def __init__(self, query: Callable[[Query], str], relation: Callable[[Relation], str]) -> None:
        self._query = query
        self._relation = relation

    def list(self, items: tuple[Expression, ...]) -> str:
        return ", ".join(self.print(item) for item in items)

    def print(self, node: Expression) -> str:
        match node:
            case ast.Name():
                return dotted(node.parts)
            case ast.Star():
                return f"{dotted(node.qualifier)}.*" if node.qualifier else "*"
            case ast.Number():
                return node.text
            case ast.Text():
                return text(node.value)
            case ast.Binary():
                return f"X'{node.digits}'"
            case ast.Boolean():
                return "TRUE" if node.value else "FALSE"
            case ast.Null():
                return "NULL"
            case ast.Default():
                return "DEFAULT"
            case ast.Temporal():
                return f"{node.kind} {text(node.text)}"
            case ast.Interval():
                return self._interval(node)
            case ast.Symbol():
                return node.word
            case ast.Unary():
                return f"({node.operator} {self.print(node.operand)})"
            case ast.Operation():
                return f"({self.print(node.left)} {node.operator} {self.print(node.right)})"
            case ast.Call():
                return self.call(node)
            case ast.Case():
                return self._case(node)
            case ast.Cast():
                word = "TRY_CAST" if node.safe else "CAST"
                return f"{word}({self.print(node.operand)} AS {data_type(node.type)})"
            case ast.Item():
                return f"{self._operand(node.operand)}[{self.print(node.index)}]"
            case ast.Field():
                return f"{self._operand(node.operand)}.{quoted(node.name)}"
            case ast.ArrayOf():
                return f"ARRAY[{self.list(node.items)}]"
            case ast.MapOf():
                return f"MAP[{self.list(node.items)}]"
            case ast.RowOf():
                return f"ROW({self.list(node.items)})"
            case ast.NamedArgument():
                return f"{quoted(node.name)} => {self.print(node.value)}"
            case ast.Descriptor():
                return f"DESCRIPTOR({', '.join(map(quoted, node.columns))})"
            case ast.TableArgument():
                return self._table(node)
            case GroupingSets():
                return self._grouping(node)
            case _:
                return self._test(node)

    def _operand(self, operand: Expression) -> str:
        written = self.print(operand)
        return written if written.startswith("(") else f"({written})"

    def _test(self, node: Expression) -> str:
        """Predicates."""
        match node:
            case ast.Between():
                symmetric = "SYMMETRIC " if node.symmetric else ""
                low, high = self.print(node.low), self.print(node.high)
                return f"({self.print(node.operand)} {_not(node.negated)}BETWEEN {symmetric}{low} AND {high})"
            case ast.Like():
                escape = f" ESCAPE {self.print(node.escape)}" if node.escape is not None else ""
                operand, pattern = self.print(node.operand), self.print(node.pattern)
                return f"({operand} {_not(node.negated)}{node.operator} {pattern}{escape})"
            case ast.Is():
                return f"({self.print(node.operand)} IS {_not(node.negated)}{node.test})"
            case ast.IsDistinct():
                return f"({self.print(node.left)} IS {_not(node.negated)}DISTINCT FROM {self.print(node.right)})"
            case ast.InList():
                return f"({self.print(node.operand)} {_not(node.negated)}IN ({self.list(node.values)}))"
            case ast.InQuery():
                return f"({self.print(node.operand)} {_not(node.negated)}IN ({self._query(node.query)}))"
            case ast.Quantified():
                return f"({self.print(node.operand)} {node.operator} {node.quantifier} ({self._query(node.query)}))"
            case ast.Exists():
                return f"EXISTS ({self._query(node.query)})"
            case ast.Subquery():
                return f"({self._query(node.query)})"
        raise TypeError(f"{type(node).__name__} is no expression")

    def _interval(self, node: ast.Interval) -> str:
        unit = node.unit
        if node.until is None and node.until_precision is not None:
            unit += f"({node.precision}, {node.until_precision})"
        elif node.precision is not None:
            unit += f"({node.precision})"
        if node.until is not None:
            unit += f" TO {node.until}" + (f"({node.until_precision})" if node.until_precision is not None else "")
        return f"INTERVAL {'-' if node.negative else ''}{text(node.text)} {unit}"

    def _case(self, node: ast.Case) -> str:
        parts = ["CASE", *([self.print(node.operand)] if node.operand is not None else [])]
        for when in node.whens:
            parts.append(f"WHEN {self.print(when.condition)} THEN {self.print(when.result)}")
        if node.otherwise is not None:
            parts.append(f"ELSE {self.print(node.otherwise)}")
        return " ".join([*parts, "END"])

    def call(self, node: ast.Call) -> str:
        if node.niladic:
            return node.name[0]
        parts = [f"{function_name(node.name)}({self._arguments(node)})"]
        if node.within_group:
            parts.append(f"WITHIN GROUP (ORDER BY {self.sort(node.within_group)})")
        if node.null_treatment is not None:
            parts.append(f"{node.null_treatment} NULLS")
        if node.filter is not None:
            parts.append(f"FILTER (WHERE {self.print(node.filter)})")
        if node.over is not None:
            plain = node.over == ast.WindowSpec(node.over.name)
            parts.append("OVER " + (quoted(node.over.name) if plain and node.over.name else self.window(node.over)))
        return " ".join(parts)

    def _arguments(self, node: ast.Call) -> str:
        arguments = [self.print(argument) for argument in node.arguments]
        word = node.name[0].upper() if len(node.name) == 1 else ""
        if word == "EXTRACT" and len(arguments) == 2:
            written = f"{arguments[0]} FROM {arguments[1]}"
        elif word == "TRIM" and len(arguments) == 3:
            written = f"{arguments[0]} {arguments[1]} FROM {arguments[2]}"
        elif word in ("FLOOR", "CEIL", "CEILING") and len(arguments) == 2 and isinstance(node.arguments[1], ast.Symbol):
            written = f"{arguments[0]} TO {arguments[1]}"
        elif word in ("JSON_OBJECT", "JSON_OBJECTAGG"):
            pairs = zip(arguments[::2], arguments[1::2], strict=True)
            written = ", ".join(f"KEY {key} VALUE {value}" for key, value in pairs)
        else:
            written = ", ".join(arguments)
        for clause in node.clauses:
            written += " " + self._clause(clause)
        return f"DISTINCT {written}" if node.distinct else written.strip()

    def _clause(self, clause: ast.Clause) -> str:
        if isinstance(clause.value, DataType):
            return f"{clause.words} {data_type(clause.value)}"
        if clause.value is not None:
            first, *rest = clause.words.split()
            return f"{first} {self.print(clause.value)} {' '.join(rest)}"
        return clause.words

    def _table(self, node: ast.TableArgument) -> str:
        parts = [self._relation(node.relation)]
        if not parts[0].startswith("TABLE("):
            parts[0] = f"TABLE {parts[0]}"
        if node.partition_by:
            parts.append(f"PARTITION BY ({self.list(node.partition_by)})")
        if node.order_by:
            parts.append(f"ORDER BY ({self.sort(node.order_by)})")
        return " ".join(parts)

    def _grouping(self, node: GroupingSets) -> str:
        sets = [self.print(each) if isinstance(each, GroupingSets) else f"({self.list(each)})" for each in node.sets]
        return f"{node.kind} ({', '.join(sets)})"

    def sort(self, items: tuple[ast.SortItem, ...]) -> str:
        written = []
        for item in items:
            nulls = "" if item.nulls_first is None else f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
            written.append(f"{self.print(item.expression)}{' DESC' if item.descending else ''}{nulls}")
        return ", ".join(written)

    def window(self, spec: ast.WindowSpec) -> str:
        parts = [quoted(spec.name)] if spec.name is not None else []
        if spec.partition_by:
            parts.append(f"PARTITION BY {self.list(spec.partition_by)}")
        if spec.order_by:
            parts.append(f"ORDER BY {self.sort(spec.order_by)}")
        if spec.frame is not None:
            parts.append(f"{spec.frame.unit} BETWEEN {self._bound(spec.frame.start)} AND {self._bound(spec.frame.end)}")
        return f"({' '.join(parts)})"

    def _bound(self, bound: ast.FrameBound) -> str:
        return f"{self.print(bound.offset)} {bound.kind}" if bound.offset is not None else bound.kind


def _not(negated: bool) -> str:
    return "NOT " if negated else ""
