"""The grammar of calls: arguments, the functions whose arguments have words between them, and what follows a call."""

from __future__ import annotations

from abc import abstractmethod

from headwater.table.parser.ast import expressions as ast
from headwater.table.parser.ast.base import DataType, Expression, Relation
from headwater.table.parser.keywords import TIME_UNITS
from headwater.table.parser.tokens import Kind, Span
from headwater.table.parser.type_grammar import TypeGrammar

_JSON = ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY", "JSON_OBJECTAGG", "JSON_ARRAYAGG")

_RESERVED_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


class CallGrammar(TypeGrammar):
    @abstractmethod
    def expression(self) -> Expression:
        """Read an expression."""

    @abstractmethod
    def _sum(self) -> Expression:
        """Read an expression without a comparison: in POSITION(a IN b), IN is no operator."""

    @abstractmethod
    def at_query(self) -> bool: ...

    @abstractmethod
    def table_argument(self) -> Relation:
        """Read a table or a query in an argument."""

    def call(self, name: tuple[str, ...], start: Span) -> Expression:
        """Read arguments and what follows them, from the opening parenthesis on."""
        word = name[0].upper() if len(name) == 1 else ""
        self.expect("(")
        distinct = False
        if not self.at(")") and self.at_any("DISTINCT", "ALL"):
            distinct = self.advance().upper == "DISTINCT"
        clauses: tuple[ast.Clause, ...] = ()
        if self.at(")"):
            arguments: tuple[Expression, ...] = ()
        elif word in _JSON:
            arguments, clauses = self._json_arguments(word)
        else:
            arguments = self._worded(word) or self.commas(self._argument)
        treatment = None
        if self.at_any("RESPECT", "IGNORE") and self.ahead().upper == "NULLS":
            treatment = self._null_treatment()
        self.expect(")")
        return self._suffixes(name, arguments, distinct, clauses, treatment, start)

    def special_call(self) -> Expression | None:
        """Calls that begin with a reserved word and are no plain function."""
        if self.at("DEFAULT"):
            return ast.Default(span=self.advance().span)
        if self.token.upper in ("SESSION", "TUMBLE", "HOP") and self.ahead().text == "(":
            token = self.advance()
            return self.call((token.upper,), token.span)
        return None

    def _suffixes(
        self,
        name: tuple[str, ...],
        arguments: tuple[Expression, ...],
        distinct: bool,
        clauses: tuple[ast.Clause, ...],
        treatment: str | None,
        start: Span,
    ) -> Expression:
        within: tuple[ast.SortItem, ...] = ()
        if self.at("WITHIN", "GROUP"):
            self.accept("WITHIN", "GROUP")
            self.expect("(", "ORDER", "BY")
            within = self.commas(self.sort_item)
            self.expect(")")
        if self.at_any("RESPECT", "IGNORE") and self.ahead().upper == "NULLS":
            treatment = self._null_treatment()
        condition = None
        if self.at("FILTER", "("):
            self.accept("FILTER", "(")
            self.expect("WHERE")
            condition = self.expression()
            self.expect(")")
        over = None
        if self.at("OVER"):
            self.advance()
            over = self.window_spec() if self.at("(") else ast.WindowSpec(self.name("a window"))
        return ast.Call(name, arguments, distinct, clauses, within, treatment, condition, over, span=self.since(start))

    def _null_treatment(self) -> str:
        word = self.advance().upper
        self.advance()
        return word

    # -- Arguments

    def _argument(self) -> Expression:
        start = self.token.span
        if self.at("*"):
            self.advance()
            return ast.Star(span=start)
        if self.token.kind in (Kind.WORD, Kind.QUOTED) and self.ahead().text == "=>":
            name = self.advance().text
            self.advance()
            value = self._argument()
            return ast.NamedArgument(name, value, span=self.since(start))
        if self.at("DESCRIPTOR", "("):
            self.advance()
            return ast.Descriptor(self.in_parentheses(self.name), span=self.since(start))
        if self.at("TABLE"):
            return self._table_argument(start)
        ends = self.ahead().kind is Kind.OPERATOR and self.ahead().text in (",", ")")
        if ends and self.token.upper in _RESERVED_UNITS:  # never a column
            return ast.Symbol(self.advance().upper, span=start)
        return self.expression()

    def _table_argument(self, start: Span) -> Expression:
        relation = self.table_argument()
        partition: tuple[Expression, ...] = ()
        order: tuple[ast.SortItem, ...] = ()
        if self.at("PARTITION", "BY"):
            self.accept("PARTITION", "BY")
            partition = self.in_parentheses(self.expression) if self.at("(") else self._bare_columns()
        if self.at("ORDER", "BY"):
            self.accept("ORDER", "BY")
            if self.accept("("):
                order = self.commas(self.sort_item)
                self.expect(")")
            else:
                order = (self.sort_item(),)
        return ast.TableArgument(relation, partition, order, span=self.since(start))

    def _bare_columns(self) -> tuple[Expression, ...]:
        """`PARTITION BY a, b` among arguments: a comma goes on with columns only if a plain column follows."""
        columns = [self.expression()]
        while self.at(",") and self.ahead().kind in (Kind.WORD, Kind.QUOTED) and self.ahead(2).text in (",", ")"):
            self.advance()
            columns.append(self.expression())
        return tuple(columns)

    def _worded(self, word: str) -> tuple[Expression, ...] | None:
        """Arguments with words between them, in the order of the plain form; None if `word` has no such form."""
        match word:
            case "EXTRACT":
                unit = self._symbol()
                self.expect("FROM")
                return (unit, self.expression())
            case "TIMESTAMPADD" | "TIMESTAMPDIFF":
                unit = self._symbol()
                self.expect(",")
                return (unit, *self.commas(self.expression))
            case "FLOOR" | "CEIL" | "CEILING":
                value = self.expression()
                if self.at("TO"):
                    self.advance()
                    return (value, self._symbol())
                return (value, *(self.commas(self._argument) if self.accept(",") else ()))
            case "TRIM":
                return self._trim()
            case "POSITION":
                needle = self._sum()
                if self.at("IN"):
                    self.advance()
                    return (needle, self._sum(), *((self._sum(),) if self._read("FROM") else ()))
                self.expect(",")
                return (needle, *self.commas(self.expression))
            case "SUBSTRING":
                value = self.expression()
                if not self._read("FROM"):
                    return (value, *(self.commas(self.expression) if self.accept(",") else ()))
                start = self.expression()
                return (value, start, *((self.expression(),) if self._read("FOR") else ()))
            case "OVERLAY":
                value = self.expression()
                if not self._read("PLACING"):
                    return (value, *(self.commas(self.expression) if self.accept(",") else ()))
                new = self.expression()
                self.expect("FROM")
                start = self.expression()
                return (value, new, start, *((self.expression(),) if self._read("FOR") else ()))
        return None

    def _read(self, word: str) -> bool:
        if self.at(word):
            self.advance()
            return True
        return False

    def _symbol(self) -> ast.Symbol:
        start = self.token.span
        return ast.Symbol(self.expect_any(*TIME_UNITS), span=start)

    def _trim(self) -> tuple[Expression, ...]:
        token = self.token
        side = ast.Symbol(
            self.advance().upper if self.at_any("BOTH", "LEADING", "TRAILING") else "BOTH", span=token.span
        )
        if self._read("FROM"):
            return (side, ast.Text(" "), self.expression())
        first = self.expression()
        if self._read("FROM"):
            return (side, first, self.expression())
        return (side, ast.Text(" "), first)

    # -- JSON

    def _json_arguments(self, word: str) -> tuple[tuple[Expression, ...], tuple[ast.Clause, ...]]:
        arguments: list[Expression] = []
        clauses: list[ast.Clause] = []
        while not self.at(")"):
            clause = self._json_clause()
            if clause is not None:
                clauses.append(clause)
                continue
            if arguments:
                self.expect(",")
            if word in ("JSON_OBJECT", "JSON_OBJECTAGG"):
                arguments.extend(self._json_pair())
            else:
                arguments.append(self.expression())
        return tuple(arguments), tuple(clauses)

    def _json_pair(self) -> tuple[Expression, Expression]:
        self._read("KEY")
        key = self.expression()
        if self.at(":"):
            self.advance()
        else:
            self.expect("VALUE")
        return key, self.expression()

    def _json_clause(self) -> ast.Clause | None:
        start = self.token.span
        if self.at("RETURNING"):
            self.advance()
            type_: DataType = self.data_type()
            return ast.Clause("RETURNING", type_, span=self.since(start))
        if self.at("DEFAULT"):
            self.advance()
            value = self.expression()
            self.expect("ON")
            return ast.Clause(f"DEFAULT ON {self.expect_any('EMPTY', 'ERROR')}", value, span=self.since(start))
        phrases = (
            "NULL ON NULL", "ABSENT ON NULL", "NULL ON EMPTY", "NULL ON ERROR", "ERROR ON EMPTY", "ERROR ON ERROR",
            "TRUE ON ERROR", "FALSE ON ERROR", "UNKNOWN ON ERROR", "EMPTY ARRAY ON EMPTY", "EMPTY ARRAY ON ERROR",
            "EMPTY OBJECT ON EMPTY", "EMPTY OBJECT ON ERROR", "WITHOUT ARRAY WRAPPER", "WITHOUT WRAPPER",
            "WITH CONDITIONAL ARRAY WRAPPER", "WITH CONDITIONAL WRAPPER", "WITH UNCONDITIONAL ARRAY WRAPPER",
            "WITH UNCONDITIONAL WRAPPER", "WITH ARRAY WRAPPER", "WITH WRAPPER",
        )  # fmt: skip
        for phrase in phrases:
            if self.at(*phrase.split()):
                for _ in phrase.split():
                    self.advance()
                words = phrase.replace(" ARRAY WRAPPER", " WRAPPER").replace(
                    "WITH WRAPPER", "WITH UNCONDITIONAL WRAPPER"
                )
                return ast.Clause(words, span=self.since(start))
        return None

    # -- Order and windows

    def sort_item(self) -> ast.SortItem:
        start = self.token.span
        expression = self.expression()
        descending = self.accept_any("ASC", "DESC") == "DESC"
        nulls_first = None
        if self.accept("NULLS"):
            nulls_first = self.expect_any("FIRST", "LAST") == "FIRST"
        return ast.SortItem(expression, descending, nulls_first, span=self.since(start))

    def window_spec(self) -> ast.WindowSpec:
        """Read `(name PARTITION BY … ORDER BY … frame)`."""
        start = self.token.span
        self.expect("(")
        name = self.advance().text if self.at_name() and not self.at("PARTITION") else None
        partition = self.commas(self.expression) if self.accept("PARTITION", "BY") else ()
        order = self.commas(self.sort_item) if self.accept("ORDER", "BY") else ()
        frame = None
        if (unit := self.accept_any("ROWS", "RANGE")) is not None:
            frame = self._frame(unit)
        self.expect(")")
        return ast.WindowSpec(name, partition, order, frame, span=self.since(start))

    def _frame(self, unit: str) -> ast.Frame:
        start = self.previous.span
        if not self.accept("BETWEEN"):
            return ast.Frame(unit, self._bound(), ast.FrameBound("CURRENT ROW"), span=self.since(start))
        low = self._bound()
        self.expect("AND")
        return ast.Frame(unit, low, self._bound(), span=self.since(start))

    def _bound(self) -> ast.FrameBound:
        start = self.token.span
        if self.accept("CURRENT"):
            self.expect("ROW")
            return ast.FrameBound("CURRENT ROW", span=self.since(start))
        if self.accept("UNBOUNDED"):
            word = self.expect_any("PRECEDING", "FOLLOWING")
            return ast.FrameBound(f"UNBOUNDED {word}", span=self.since(start))
        offset = self._sum()
        return ast.FrameBound(self.expect_any("PRECEDING", "FOLLOWING"), offset, span=self.since(start))
