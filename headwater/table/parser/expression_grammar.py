"""The grammar of expressions, by rising precedence: OR, AND, NOT, comparisons, `+ - ||`, `* / %`, signs, what ends in
`[…]` or `.name`.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import Expression, Query
from headwater.table.parser.call_grammar import CallGrammar
from headwater.table.parser.keywords import CALLABLE, INTERVAL_UNITS, NILADIC, RESERVED
from headwater.table.parser.tokens import Kind

_COMPARISONS = ("=", "<>", "!=", "<=", ">=", "<", ">")
_PERIODS = ("OVERLAPS", "CONTAINS", "PRECEDES", "SUCCEEDS", "EQUALS")


class ExpressionGrammar(CallGrammar):
    @abstractmethod
    def query(self) -> Query:
        """Read a query."""

    def at_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""
        distance = 0
        while self.ahead(distance).text == "(" and self.ahead(distance).kind is Kind.OPERATOR:
            distance += 1
        return self.ahead(distance).upper in ("SELECT", "WITH", "VALUES") or (
            self.ahead(distance).upper == "TABLE" and self.ahead(distance + 1).text != "("
        )

    def expression(self) -> Expression:
        left = self._and()
        while self.at("OR"):
            self.advance()
            right = self._and()
            left = ast.Operation("OR", left, right, span=left.span.to(right.span))
        return left

    def _and(self) -> Expression:
        left = self._not()
        while self.at("AND"):
            self.advance()
            right = self._not()
            left = ast.Operation("AND", left, right, span=left.span.to(right.span))
        return left

    def _not(self) -> Expression:
        if not self.at("NOT"):
            return self._comparison()
        start = self.advance().span
        operand = self._not()
        return ast.Unary("NOT", operand, span=start.to(operand.span))

    # -- Comparisons

    def _comparison(self) -> Expression:
        left = self._sum()
        while True:
            found = self._compared(left)
            if found is None:
                return left
            left = dataclasses.replace(found, span=self.since(left.span))

    def _compared(self, left: Expression) -> Expression | None:
        if self.token.kind is Kind.OPERATOR and self.token.text in _COMPARISONS:
            operator = self.advance().text
            operator = "<>" if operator == "!=" else operator
            if self.at_any("ANY", "SOME", "ALL") and self.ahead().text == "(":
                quantifier = "ALL" if self.advance().upper == "ALL" else "ANY"
                return ast.Quantified(operator, left, quantifier, self._query_in_parentheses())
            return ast.Operation(operator, left, self._sum())
        if self.at("IS"):
            return self._is_test(left)
        if self.at_any(*_PERIODS):
            return ast.Operation(self.advance().upper, left, self._sum())
        negated = self.at("NOT") and self.ahead().upper in ("IN", "LIKE", "BETWEEN", "SIMILAR", "RLIKE")
        if negated:
            self.advance()
        if self.at("IN"):
            self.advance()
            return self._in(left, negated)
        if self.at("BETWEEN"):
            self.advance()
            symmetric = self.accept_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
            low = self._sum()
            self.expect("AND")
            return ast.Between(left, low, self._sum(), negated, symmetric)
        if self.at_any("LIKE", "SIMILAR"):
            operator = self.advance().upper
            if operator == "SIMILAR":
                self.expect("TO")
                operator = "SIMILAR TO"
            pattern = self._sum()
            escape = None
            if self.at("ESCAPE"):
                self.advance()
                escape = self._sum()
            return ast.Like(operator, left, pattern, escape, negated)
        return None

    def _is_test(self, left: Expression) -> Expression:
        self.advance()
        negated = self.accept("NOT")
        if self.accept("DISTINCT"):
            self.expect("FROM")
            return ast.IsDistinct(left, self._sum(), negated)
        if self.accept("JSON"):
            kind = self.accept_any("VALUE", "OBJECT", "ARRAY", "SCALAR")
            return ast.Is(left, f"JSON {kind}" if kind else "JSON", negated)
        return ast.Is(left, self.expect_any("NULL", "TRUE", "FALSE", "UNKNOWN"), negated)

    def _in(self, left: Expression, negated: bool) -> Expression:
        query = self._possible_query()
        if query is not None:
            return ast.InQuery(left, query, negated)
        return ast.InList(left, self.in_parentheses(self.expression), negated)

    def _possible_query(self) -> Query | None:
        """Read `(query)` if it is one. Several parentheses may also begin an expression: `((SELECT 1) + 1)`."""
        if not self.at("(") or not self.at_query():
            return None
        mark = self.mark()
        self.advance()
        may_be_operand = self.at("(")
        try:
            query = self.query()
            if self.accept(")"):
                return query
        except SqlError:
            if not may_be_operand:
                raise
        self.rewind(mark)
        return None

    def _query_in_parentheses(self) -> Query:
        self.expect("(")
        query = self.query()
        self.expect(")")
        return query

    # -- Arithmetic

    def _sum(self) -> Expression:
        left = self._product()
        while self.token.kind is Kind.OPERATOR and self.token.text in ("+", "-", "||"):
            operator = self.advance().text
            right = self._product()
            left = ast.Operation(operator, left, right, span=left.span.to(right.span))
        return left

    def _product(self) -> Expression:
        left = self._signed()
        while self.token.kind is Kind.OPERATOR and self.token.text in ("*", "/", "%"):
            operator = self.advance().text
            right = self._signed()
            left = ast.Operation(operator, left, right, span=left.span.to(right.span))
        return left

    def _signed(self) -> Expression:
        if self.token.kind is not Kind.OPERATOR or self.token.text not in ("+", "-"):
            return self._postfix()
        sign = self.advance()
        operand = self._signed()
        if sign.text == "-" and isinstance(operand, ast.Number) and not operand.text.startswith("-"):
            return ast.Number(f"-{operand.text}", span=sign.span.to(operand.span))
        return ast.Unary(sign.text, operand, span=sign.span.to(operand.span))

    def _postfix(self) -> Expression:
        operand = self._primary()
        while True:
            if self.at("["):
                self.advance()
                index = self.expression()
                self.expect("]")
                operand = ast.Item(operand, index, span=self.since(operand.span))
            elif self.at(".") and self.ahead().kind in (Kind.WORD, Kind.QUOTED):
                self.advance()
                operand = ast.Field(operand, self.advance().text, span=self.since(operand.span))
            elif self.at("AT", "TIME", "ZONE"):
                raise self.error("AT TIME ZONE is not part of the language; use CONVERT_TZ(…)", self.token.span)
            else:
                return operand

    # -- What cannot be cut further

    def _primary(self) -> Expression:
        token = self.token
        match token.kind:
            case Kind.NUMBER:
                self.advance()
                return ast.Number(token.text, span=token.span)
            case Kind.STRING:
                self.advance()
                return ast.Text(self._continued(token.text), span=self.since(token.span))
            case Kind.BINARY:
                self.advance()
                return ast.Binary(token.text, span=token.span)
            case Kind.OPERATOR if token.text == "(":
                return self._parenthesised()
            case Kind.WORD | Kind.QUOTED:
                return self._word()
        raise self.wanted("an expression")

    def _continued(self, text: str) -> str:
        """SQL glues strings that stand on lines of their own."""
        while self.token.kind is Kind.STRING and "\n" in self.sql[self.previous.span.end : self.token.span.start]:
            text += self.advance().text
        return text

    def _parenthesised(self) -> Expression:
        start = self.token.span
        query = self._possible_query()
        if query is not None:
            return ast.Subquery(query, span=self.since(start))
        self.advance()
        items = self.commas(self.expression)
        self.expect(")")
        if len(items) == 1:
            return items[0]
        return ast.RowOf(items, span=self.since(start))

    def _word(self) -> Expression:
        token = self.token
        word = token.upper
        if word in ("TRUE", "FALSE"):
            self.advance()
            return ast.Boolean(word == "TRUE", span=token.span)
        if word == "NULL":
            self.advance()
            return ast.Null(span=token.span)
        if word in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ") and self.ahead().kind is Kind.STRING:
            self.advance()
            return ast.Temporal(word, self.advance().text, span=self.since(token.span))
        if word == "INTERVAL" and (self.ahead().kind is Kind.STRING or self.ahead().text == "-"):
            return self._interval_literal()
        if word == "CASE":
            return self._case()
        if word in ("CAST", "TRY_CAST"):
            return self._cast()
        if word == "EXISTS" and self.ahead().text == "(":
            self.advance()
            return ast.Exists(self._query_in_parentheses(), span=self.since(token.span))
        if word in ("ARRAY", "MAP") and self.ahead().text == "[":
            self.advance()
            self.advance()
            items = () if self.at("]") else self.commas(self.expression)
            self.expect("]")
            kind = ast.ArrayOf if word == "ARRAY" else ast.MapOf
            return kind(items, span=self.since(token.span))
        if word == "ROW" and self.ahead().text == "(":
            self.advance()
            self.advance()
            items = () if self.at(")") else self.commas(self.expression)
            self.expect(")")
            return ast.RowOf(items, span=self.since(token.span))
        if word in NILADIC and self.ahead().text != "(":
            self.advance()
            return ast.Call((word,), niladic=True, span=token.span)
        if word in RESERVED and not (word in CALLABLE and self.ahead().text == "("):
            special = self.special_call()
            if special is not None:
                return special
            raise self.wanted("an expression")
        return self._name_or_call()

    def _name_or_call(self) -> Expression:
        start = self.token.span
        parts = [self.advance().text]
        while self.at(".") and self.ahead().kind in (Kind.WORD, Kind.QUOTED):
            self.advance()
            parts.append(self.advance().text)
        if self.at("("):
            return self.call(tuple(parts), start)
        return ast.Name(tuple(parts), span=self.since(start))

    def _interval_literal(self) -> Expression:
        start = self.advance().span
        negative = self.accept("-")
        text = self.string("the length of the interval, as a string")
        unit = self._unit()
        precisions = list(self.in_parentheses(self.integer)) if self.at("(") else []
        until = until_precision = None
        if self.at("TO"):
            self.advance()
            until = self._unit()
            until_precision = self.in_parentheses(self.integer)[0] if self.at("(") else None
        elif unit == "SECOND" and len(precisions) == 2:
            until_precision = precisions[1]
        precision = precisions[0] if precisions else None
        return ast.Interval(text, unit, until, precision, until_precision, negative, span=self.since(start))

    def _unit(self) -> str:
        word = self.token.upper
        for unit in INTERVAL_UNITS:
            if word in (unit, f"{unit}S"):
                self.advance()
                return unit
        return self.expect_any(*INTERVAL_UNITS)

    def _case(self) -> Expression:
        start = self.advance().span
        operand = None if self.at("WHEN") else self.expression()
        whens: list[ast.When] = []
        while self.accept("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            result = self.expression()
            whens.append(ast.When(condition, result, span=condition.span.to(result.span)))
        if not whens:
            raise self.unexpected()
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return ast.Case(operand, tuple(whens), otherwise, span=self.since(start))

    def _cast(self) -> Expression:
        start = self.token.span
        safe = self.advance().upper == "TRY_CAST"
        self.expect("(")
        operand = self.expression()
        self.expect("AS")
        type_ = self.data_type()
        self.expect(")")
        return ast.Cast(operand, type_, safe, span=self.since(start))
