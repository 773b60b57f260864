"""The grammar of queries and of what stands in FROM."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression, Query, Relation
from headwater.table.parser.pattern_grammar import PatternGrammar
from headwater.table.parser.tokens import Kind

_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")


class QueryGrammar(PatternGrammar):
    def query(self) -> Query:
        start = self.token.span
        if not self.accept("WITH"):
            return self._ordered(self._set_operation())
        if self.at("RECURSIVE"):
            raise self.error("WITH RECURSIVE is not part of the language", self.token.span)
        tables = self.commas(self._common_table)
        return ast.With(tables, self._ordered(self._set_operation()), span=self.since(start))

    def _common_table(self) -> ast.CommonTable:
        start = self.token.span
        name = self.name("the name of a query")
        columns = self.in_parentheses(self.name) if self.at("(") else ()
        self.expect("AS", "(")
        query = self.query()
        self.expect(")")
        return ast.CommonTable(name, query, columns, span=self.since(start))

    def _ordered(self, query: Query) -> Query:
        order = self.commas(self.sort_item) if self.accept("ORDER", "BY") else ()
        limit: Expression | None = None
        offset: Expression | None = None
        while True:
            if limit is None and self.accept("LIMIT"):
                limit = None if self.accept("ALL") else self.expression()
                if limit is not None and self.accept(","):  # LIMIT offset, count
                    offset, limit = limit, self.expression()
            elif offset is None and self.accept("OFFSET"):
                offset = self.expression()
                self.accept_any("ROW", "ROWS")
            elif limit is None and self.accept("FETCH"):
                self.expect_any("FIRST", "NEXT")
                limit = ex.Number("1") if self.at_any("ROW", "ROWS") else self.expression()
                self.expect_any("ROW", "ROWS")
                self.expect("ONLY")
            else:
                break
        if not order and limit is None and offset is None:
            return query
        return ast.Ordered(query, order, offset, limit, span=self.since(query.span))

    def _set_operation(self) -> Query:
        left = self._intersection()
        while (operator := self.accept_any("UNION", "EXCEPT", "MINUS")) is not None:
            everything = self.accept_any("ALL", "DISTINCT") == "ALL"
            right = self._intersection()
            operator = "EXCEPT" if operator == "MINUS" else operator
            left = ast.SetOperation(operator, left, right, everything, span=left.span.to(right.span))
        return left

    def _intersection(self) -> Query:
        left = self._query_term()
        while self.accept("INTERSECT"):
            everything = self.accept_any("ALL", "DISTINCT") == "ALL"
            right = self._query_term()
            left = ast.SetOperation("INTERSECT", left, right, everything, span=left.span.to(right.span))
        return left

    def _query_term(self) -> Query:
        start = self.token.span
        if self.accept("("):
            query = self.query()
            self.expect(")")
            return query
        if self.accept("SELECT"):
            return self._select()
        if self.accept("VALUES"):
            return ast.Values(self.commas(self._values_row), span=self.since(start))
        if self.accept("TABLE"):
            return ast.TableQuery(self.dotted("a table"), span=self.since(start))
        raise self.unexpected()

    def _values_row(self) -> tuple[Expression, ...]:
        if self.at("ROW", "("):
            self.advance()
        elif not self.at("("):
            return (self.expression(),)
        mark, may_be_query = self.mark(), self.at_query()
        try:
            return self.in_parentheses(self.expression)
        except SqlError:
            if not may_be_query:
                raise
        self.rewind(mark)  # VALUES (SELECT 1)
        return (self.expression(),)

    # -- SELECT

    def _select(self) -> Query:
        start = self.previous.span
        hints = self._hints()
        distinct = self.accept_any("DISTINCT", "ALL") == "DISTINCT"
        items = self.commas(self._select_item)
        relation = self._from() if self.accept("FROM") else None
        where = self.expression() if self.accept("WHERE") else None
        group_by = self._group_by() if self.accept("GROUP", "BY") else None
        having = self.expression() if self.accept("HAVING") else None
        windows = self.commas(self._named_window) if self.accept("WINDOW") else ()
        qualify = self.expression() if self.accept("QUALIFY") else None
        return ast.Select(
            items, relation, where, group_by, having, windows, qualify, distinct, hints, span=self.since(start)
        )

    def _select_item(self) -> ast.SelectItem:
        start = self.token.span
        star = self._star()
        if star is not None:
            return ast.SelectItem(star, span=star.span)
        expression = self.expression()
        return ast.SelectItem(expression, self._alias(), span=self.since(start))

    def _star(self) -> ex.Star | None:
        start = self.token.span
        distance = 0
        while self.ahead(distance).kind in (Kind.WORD, Kind.QUOTED) and self.ahead(distance + 1).text == ".":
            distance += 2
        if self.ahead(distance).text != "*" or self.ahead(distance).kind is not Kind.OPERATOR:
            return None
        qualifier: list[str] = []
        while not self.at("*"):
            qualifier.append(self.advance().text)
            self.advance()
        self.advance()
        return ex.Star(tuple(qualifier), span=self.since(start))

    def _alias(self) -> str | None:
        if self.accept("AS"):
            return self.name("an alias")
        return self.advance().text if self.at_name() else None

    def _group_by(self) -> tuple[Expression, ...]:
        self.accept_any("DISTINCT", "ALL")
        if self.at("(", ")"):
            self.accept("(", ")")
            return ()
        return self.commas(self._group_item)

    def _group_item(self) -> Expression:
        start = self.token.span
        if self.at("GROUPING", "SETS"):
            self.accept("GROUPING", "SETS")
            return ast.GroupingSets("GROUPING SETS", self.in_parentheses(self._grouping_set), span=self.since(start))
        if self.at_any("ROLLUP", "CUBE"):
            kind = self.advance().upper
            sets: tuple[tuple[Expression, ...] | ast.GroupingSets, ...] = self.in_parentheses(self._grouping_set)
            return ast.GroupingSets(kind, sets, span=self.since(start))
        return self.expression()

    def _grouping_set(self) -> tuple[Expression, ...] | ast.GroupingSets:
        if self.at("GROUPING", "SETS") or self.at_any("ROLLUP", "CUBE"):
            inner = self._group_item()
            assert isinstance(inner, ast.GroupingSets)
            return inner
        if self.at("(", ")"):
            self.accept("(", ")")
            return ()
        item = self.expression()
        return item.items if isinstance(item, ex.RowOf) else (item,)

    def _named_window(self) -> ast.NamedWindow:
        start = self.token.span
        name = self.name("the name of a window")
        self.expect("AS")
        return ast.NamedWindow(name, self.window_spec(), span=self.since(start))

    # -- FROM

    def _from(self) -> Relation:
        left = self._joined()
        while self.accept(","):
            right = self._joined()
            left = ast.Join("CROSS", left, right, comma=True, span=left.span.to(right.span))
        return left

    def _joined(self) -> Relation:
        left = self._relation()
        while (word := self.accept_any(*_JOINS)) is not None:
            natural = word == "NATURAL"
            if natural:
                word = self.expect_any("JOIN", "INNER", "LEFT", "RIGHT", "FULL")
            kind = "INNER" if word == "JOIN" else word
            if word in ("LEFT", "RIGHT", "FULL"):
                self.accept("OUTER")
            if word != "JOIN":
                self.expect("JOIN")
            right = self._relation()
            condition: Expression | None = None
            using: tuple[str, ...] = ()
            if kind != "CROSS" and not natural:
                if self.expect_any("ON", "USING") == "ON":
                    condition = self.expression()
                else:
                    using = self.in_parentheses(self.name)
            left = ast.Join(kind, left, right, condition, using, natural, span=self.since(left.span))
        return left

    def _relation(self) -> Relation:
        relation = self._suffixed(self._plain_relation())
        aliased = self._relation_alias(relation)
        if aliased is not relation and self.at("MATCH_RECOGNIZE"):
            raise self.error("the alias of MATCH_RECOGNIZE stands behind it", self.token.span)
        return aliased

    def _relation_alias(self, relation: Relation) -> Relation:
        explicit = self.accept("AS")
        if not explicit and not self.at_name():
            return relation
        alias = self.name("an alias")
        columns = self.in_parentheses(self.name) if self.at("(") else ()
        return ast.Aliased(relation, alias, columns, span=self.since(relation.span))

    def _suffixed(self, relation: Relation) -> Relation:
        while True:
            if self.at("FOR", "SYSTEM_TIME"):
                self.accept("FOR", "SYSTEM_TIME")
                self.expect("AS", "OF")
                relation = ast.Snapshot(relation, self._sum(), span=self.since(relation.span))
            elif self.at("MATCH_RECOGNIZE"):
                relation = self.match_recognize(relation)
            else:
                return relation

    def _plain_relation(self) -> Relation:
        start = self.token.span
        lateral = self.accept("LATERAL")
        if self.at("("):
            if self.at_query():
                mark = self.mark()
                self.advance()
                query = self.query()
                if self.accept(")"):
                    return ast.Derived(query, lateral, span=self.since(start))
                self.rewind(mark)
            self.advance()
            relation = self._joined()
            self.expect(")")
            return relation
        if self.accept("TABLE"):
            self.expect("(")
            if self.token.kind in (Kind.WORD, Kind.QUOTED):
                relation = self._function(lateral)
                self.expect(")")
                return relation
            raise self.wanted("a table function")
        if self.at("UNNEST"):
            self.advance()
            expressions = self.in_parentheses(self.expression)
            ordinality = self.accept("WITH", "ORDINALITY")
            return ast.Unnest(expressions, ordinality, span=self.since(start))
        if lateral:
            return self._function(True)
        if self.token.kind in (Kind.WORD, Kind.QUOTED) and self._is_function():
            return self._function(False)
        name = self.dotted("a table")
        return ast.TableName(name, self._hints(), span=self.since(start))

    def _is_function(self) -> bool:
        distance = 1
        while self.ahead(distance).text == "." and self.ahead(distance + 1).kind in (Kind.WORD, Kind.QUOTED):
            distance += 2
        return self.ahead(distance).kind is Kind.OPERATOR and self.ahead(distance).text == "("

    def _function(self, lateral: bool) -> Relation:
        start = self.token.span
        parts = [self.advance().text]
        while self.accept("."):
            parts.append(self.advance().text)
        call = self.call(tuple(parts), start)
        assert isinstance(call, ex.Call)
        return ast.TableFunction(call, lateral, span=self.since(start))

    def table_argument(self) -> Relation:
        start = self.token.span
        self.expect("TABLE")
        if self.at("("):
            self.advance()
            if self.at_query():
                query = self.query()
                self.expect(")")
                return ast.Derived(query, span=self.since(start))
            relation = self._function(False)
            self.expect(")")
            return relation
        if self._is_function():
            return self._function(False)
        name = self.dotted("a table")
        return ast.TableName(name, self._hints(), span=self.since(start))

    # -- Hints

    def _hints(self) -> tuple[ast.Hint, ...]:
        if not self.at("/*+"):
            return ()
        self.advance()
        hints = self.commas(self._hint)
        self.expect("*/")
        return hints

    def _hint(self) -> ast.Hint:
        start = self.token.span
        if self.token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self.wanted("a hint")
        name = self.advance().text.upper()
        arguments: tuple[tuple[str, str | None], ...] = ()
        if self.accept("("):
            if not self.at(")"):
                arguments = self.commas(self._hint_argument)
            self.expect(")")
        return ast.Hint(name, arguments, span=self.since(start))

    def _hint_argument(self) -> tuple[str, str | None]:
        if self.token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING, Kind.NUMBER):
            raise self.wanted("an option")
        key = ".".join(self.dotted()) if self.token.kind in (Kind.WORD, Kind.QUOTED) else self.advance().text
        return key, (self.string("the option's value") if self.accept("=") else None)
