"""The grammar of what is between the parentheses of CREATE TABLE, and of options."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Expression
from headwater.table.parser.query_grammar import QueryGrammar
from headwater.table.parser.tokens import Kind


@dataclass
class SchemaParts:
    """What was read so far of a table's definition."""

    columns: list[tuple[ast.Column, str | None]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    watermark: ast.Watermark | None = None
    keys: list[ast.Key] = field(default_factory=list)


class SchemaGrammar(QueryGrammar):
    def schema(self, alter: bool = False) -> SchemaParts:
        """Read `(column, WATERMARK …, PRIMARY KEY …)`. In ALTER, columns may have a place."""
        parts = SchemaParts()
        self.expect("(")
        while True:
            self.schema_part(parts, alter)
            if not self.accept(","):
                break
        self.expect(")")
        return parts

    def schema_part(self, parts: SchemaParts, alter: bool = False) -> None:
        start = self.token.span
        if self.at("WATERMARK"):
            if parts.watermark is not None:
                raise self.error("a table has one watermark; this is a second one", start)
            parts.watermark = self._watermark()
        elif self.at_any("PRIMARY", "UNIQUE", "CONSTRAINT"):
            if any(key.kind == "PRIMARY KEY" for key in parts.keys):
                raise self.error("a table has one primary key; this is a second one", start)
            parts.keys.append(self._key())
        elif not alter and self.ahead().kind is Kind.OPERATOR and self.ahead().text in (",", ")"):
            parts.names.append(self.name("a column"))
        else:
            column, place = self._column(), None
            if alter:
                if self.accept("FIRST"):
                    place = "FIRST"
                elif self.accept("AFTER"):
                    place = f"AFTER {self.name('a column')}"
            if any(column.name == other.name for other, _ in parts.columns):
                raise self.error(f"column '{column.name}' is defined twice", start)
            parts.columns.append((column, place))

    def _column(self) -> ast.Column:
        start = self.token.span
        name = self.name("a column")
        if self.accept("AS"):
            expression = self.expression()
            return ast.Column(name, expression=expression, comment=self._comment(), span=self.since(start))
        if self.accept("METADATA"):
            raise self.error(f"column '{name}' needs a type before METADATA", self.previous.span)
        type_ = self.data_type()
        if self.accept("METADATA"):
            key = self.string("the key of the metadata") if self.accept("FROM") else None
            virtual = self.accept("VIRTUAL")
            return ast.Column(
                name,
                type_,
                metadata=True,
                metadata_key=key,
                virtual=virtual,
                comment=self._comment(),
                span=self.since(start),
            )
        primary = False
        if self.at("CONSTRAINT"):
            self.advance()
            self.name("the name of the constraint")
            self.expect("PRIMARY", "KEY")
            primary = True
        elif self.accept("PRIMARY"):
            self.expect("KEY")
            primary = True
        if primary:
            self._not_enforced()
        return ast.Column(name, type_, comment=self._comment(), primary_key=primary, span=self.since(start))

    def _comment(self) -> str | None:
        return self.string("the comment") if self.accept("COMMENT") else None

    def _watermark(self) -> ast.Watermark:
        start = self.token.span
        self.expect("WATERMARK", "FOR")
        column = self.dotted("a column")
        self.expect("AS")
        return ast.Watermark(column, self.expression(), span=self.since(start))

    def _key(self) -> ast.Key:
        start = self.token.span
        name = self.name("the name of the constraint") if self.accept("CONSTRAINT") else None
        kind = self.expect_any("PRIMARY", "UNIQUE")
        if kind == "PRIMARY":
            self.expect("KEY")
            kind = "PRIMARY KEY"
        columns = self.in_parentheses(self.name)
        enforced = not self._not_enforced()
        return ast.Key(kind, columns, name, enforced, span=self.since(start))

    def _not_enforced(self) -> bool:
        if self.accept("NOT"):
            self.expect("ENFORCED")
            return True
        self.accept("ENFORCED")
        return False

    def options(self) -> ast.Options:
        """Read `('key' = 'value', …)`; empty parentheses are allowed."""
        self.expect("(")
        if self.accept(")"):
            return ()
        pairs = self.commas(self._option)
        self.expect(")")
        return pairs

    def _option(self) -> tuple[str, str]:
        key = self.string("the key of an option, as a string")
        self.expect("=")
        return key, self.string("the option's value, as a string")

    def with_options(self) -> ast.Options:
        return self.options() if self.accept("WITH") else ()

    def comment(self) -> str | None:
        return self._comment()

    def distribution(self) -> ast.Distribution:
        """Read what follows DISTRIBUTED or DISTRIBUTION."""
        start = self.token.span
        kind = None
        columns: tuple[str, ...] = ()
        if self.accept("BY"):
            kind = self.accept_any("HASH", "RANGE")
            columns = self.in_parentheses(self.name)
        buckets = None
        if self.accept("INTO"):
            buckets = self.integer()
            self.expect("BUCKETS")
        return ast.Distribution(columns, kind, buckets, span=self.since(start))

    def partition(self) -> tuple[tuple[str, Expression], ...]:
        """Read `(a = 1, b = 'x')`."""
        return self.in_parentheses(self._partition_part)

    def _partition_part(self) -> tuple[str, Expression]:
        name = self.name("a column")
        self.expect("=")
        return name, self._sum()
