"""Queries and relations as text that parses to the same tree."""

from __future__ import annotations

from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression, Query, Relation
from headwater.table.parser.printing.expressions import ExpressionPrinter
from headwater.table.parser.printing.names import dotted, quoted, text


def print_query(query: Query) -> str:
    match query:
        case ast.Select():
            return _select(query)
        case ast.Values():
            return "VALUES " + ", ".join(f"({_expressions.list(row)})" for row in query.rows)
        case ast.TableQuery():
            return f"TABLE {dotted(query.name)}"
        case ast.SetOperation():
            everything = " ALL" if query.all else ""
            return f"({print_query(query.left)}) {query.operator}{everything} ({print_query(query.right)})"
        case ast.Ordered():
            return _ordered(query)
        case ast.With():
            tables = ", ".join(
                f"{quoted(table.name)}{_columns(table.columns)} AS ({print_query(table.query)})"
                for table in query.tables
            )
            inner = print_query(query.query)
            return f"WITH {tables} " + (f"({inner})" if isinstance(query.query, ast.With) else inner)
    raise TypeError(f"{type(query).__name__} is no query")


def print_expression(expression: Expression) -> str:
    return _expressions.print(expression)


def print_relation(relation: Relation) -> str:
    match relation:
        case ast.TableName():
            return dotted(relation.name) + (f" {print_hints(relation.hints)}" if relation.hints else "")
        case ast.Derived():
            return f"{'LATERAL ' if relation.lateral else ''}({print_query(relation.query)})"
        case ast.TableFunction():
            call = _expressions.call(relation.call)
            return f"LATERAL TABLE({call})" if relation.lateral else f"TABLE({call})"
        case ast.Unnest():
            ordinality = " WITH ORDINALITY" if relation.ordinality else ""
            return f"UNNEST({_expressions.list(relation.expressions)}){ordinality}"
        case ast.Aliased():
            return f"{_operand(relation.relation)} AS {quoted(relation.alias)}{_columns(relation.columns)}"
        case ast.Snapshot():
            period = _expressions.print(relation.period)
            return f"{_operand(relation.relation)} FOR SYSTEM_TIME AS OF {period}"
        case ast.Join():
            return _join(relation)
        case ast.MatchRecognize():
            return _match_recognize(relation)
    raise TypeError(f"{type(relation).__name__} is no relation")


_expressions = ExpressionPrinter(print_query, print_relation)


def _operand(relation: Relation) -> str:
    written = print_relation(relation)
    return f"({written})" if isinstance(relation, ast.Join | ast.Aliased) else written


def _columns(names: tuple[str, ...]) -> str:
    return f" ({', '.join(map(quoted, names))})" if names else ""


def print_hints(hints: tuple[ast.Hint, ...]) -> str:
    written = []
    for hint in hints:
        arguments = [text(key) + (f" = {text(value)}" if value is not None else "") for key, value in hint.arguments]
        written.append(f"{quoted(hint.name)}({', '.join(arguments)})" if arguments else quoted(hint.name))
    return f"/*+ {', '.join(written)} */"


def _select(query: ast.Select) -> str:
    items = []
    for item in query.items:
        alias = f" AS {quoted(item.alias)}" if item.alias is not None else ""
        items.append(_expressions.print(item.expression) + alias)
    parts = ["SELECT"]
    if query.hints:
        parts.append(print_hints(query.hints))
    if query.distinct:
        parts.append("DISTINCT")
    parts.append(", ".join(items))
    if query.relation is not None:
        parts.append(f"FROM {print_relation(query.relation)}")
    if query.where is not None:
        parts.append(f"WHERE {_expressions.print(query.where)}")
    if query.group_by is not None:
        parts.append(f"GROUP BY {_expressions.list(query.group_by) or '()'}")
    if query.having is not None:
        parts.append(f"HAVING {_expressions.print(query.having)}")
    if query.windows:
        windows = (f"{quoted(each.name)} AS {_expressions.window(each.window)}" for each in query.windows)
        parts.append(f"WINDOW {', '.join(windows)}")
    if query.qualify is not None:
        parts.append(f"QUALIFY {_expressions.print(query.qualify)}")
    return " ".join(parts)


def _ordered(query: ast.Ordered) -> str:
    inner = print_query(query.query)
    parts = [f"({inner})" if isinstance(query.query, ast.Ordered | ast.With) else inner]
    if query.order_by:
        parts.append(f"ORDER BY {_expressions.sort(query.order_by)}")
    if query.limit is not None:
        parts.append(f"LIMIT {_expressions.print(query.limit)}")
    if query.offset is not None:
        parts.append(f"OFFSET {_expressions.print(query.offset)}")
    return " ".join(parts)


def _join(join: ast.Join) -> str:
    left = print_relation(join.left)
    if isinstance(join.left, ast.Join) and join.left.comma and not join.comma:
        left = f"({left})"
    right = print_relation(join.right)
    if isinstance(join.right, ast.Join):
        right = f"({right})"
    if join.comma:
        return f"{left}, {right}"
    words = f"{'NATURAL ' if join.natural else ''}{join.kind} JOIN"
    condition = f" ON {_expressions.print(join.condition)}" if join.condition is not None else ""
    using = f" USING{_columns(join.using)}" if join.using else ""
    return f"{left} {words} {right}{condition}{using}"


def _match_recognize(match: ast.MatchRecognize) -> str:
    parts = []
    if match.partition_by:
        parts.append(f"PARTITION BY {_expressions.list(match.partition_by)}")
    if match.order_by:
        parts.append(f"ORDER BY {_expressions.sort(match.order_by)}")
    if match.measures:
        measures = (f"{_expressions.print(each.expression)} AS {quoted(each.alias)}" for each in match.measures)
        parts.append(f"MEASURES {', '.join(measures)}")
    if match.rows_per_match is not None:
        parts.append(f"{match.rows_per_match} PER MATCH")
    if match.after_match is not None:
        target = f" {quoted(match.skip_to)}" if match.skip_to is not None else ""
        parts.append(f"AFTER MATCH {match.after_match}{target}")
    parts.append(f"PATTERN ({_pattern(match.pattern)})")
    if match.within is not None:
        parts.append(f"WITHIN {_expressions.print(match.within)}")
    if match.subsets:
        parts.append("SUBSET " + ", ".join(f"{quoted(name)} ={_columns(of)}" for name, of in match.subsets))
    definitions = (f"{quoted(each.variable)} AS {_expressions.print(each.condition)}" for each in match.definitions)
    parts.append(f"DEFINE {', '.join(definitions)}")
    return f"{print_relation(match.relation)} MATCH_RECOGNIZE ({' '.join(parts)})"


def _pattern(pattern: ast.Pattern) -> str:
    match pattern:
        case ast.PatternVariable():
            return quoted(pattern.name)
        case ast.PatternSequence():
            return " ".join(_part(part, ast.PatternChoice, ast.PatternSequence) for part in pattern.parts)
        case ast.PatternChoice():
            return " | ".join(_part(part, ast.PatternChoice) for part in pattern.parts)
        case ast.PatternRepeat():
            most = "" if pattern.most is None else str(pattern.most)
            reluctant = "?" if pattern.reluctant else ""
            part = _part(pattern.part, ast.PatternChoice, ast.PatternSequence, ast.PatternRepeat)
            return f"{part}{{{pattern.least},{most}}}{reluctant}"
        case ast.PatternExclusion():
            return f"{{- {_pattern(pattern.part)} -}}"
        case ast.PatternPermute():
            return f"PERMUTE({', '.join(map(_pattern, pattern.parts))})"
    raise TypeError(f"{type(pattern).__name__} is no pattern")


def _part(pattern: ast.Pattern, *in_parentheses: type[ast.Pattern]) -> str:
    written = _pattern(pattern)
    return f"({written})" if isinstance(pattern, in_parentheses) else written
