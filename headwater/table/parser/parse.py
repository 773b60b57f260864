"""From text to syntax trees."""

from __future__ import annotations

from headwater.table.parser.ast.base import DataType, Expression, Query, Statement
from headwater.table.parser.statement_grammar import StatementGrammar
from headwater.table.parser.tokens import Kind


def parse_statements(sql: str) -> tuple[Statement, ...]:
    """All statements of a script. Raises SqlError with the place of the first mistake."""
    return StatementGrammar(sql).statements()


def parse_statement(sql: str) -> Statement:
    """The one statement of a text; a semicolon may follow it."""
    grammar = StatementGrammar(sql)
    while grammar.accept(";"):
        pass
    statement = grammar.statement()
    while grammar.accept(";"):
        pass
    _end(grammar)
    return statement


def parse_query(sql: str) -> Query:
    grammar = StatementGrammar(sql)
    query = grammar.query()
    while grammar.accept(";"):
        pass
    _end(grammar)
    return query


def parse_expression(sql: str) -> Expression:
    grammar = StatementGrammar(sql)
    expression = grammar.expression()
    _end(grammar)
    return expression


def parse_type(sql: str) -> DataType:
    grammar = StatementGrammar(sql)
    data_type = grammar.data_type()
    _end(grammar)
    return data_type


def _end(grammar: StatementGrammar) -> None:
    if grammar.token.kind is not Kind.END:
        raise grammar.wanted("the end of the statement")
