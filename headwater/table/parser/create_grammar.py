"""The grammar of CREATE, ALTER and DROP."""

from __future__ import annotations

from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Query, Statement
from headwater.table.parser.schema_grammar import SchemaGrammar, SchemaParts
from headwater.table.parser.tokens import Span

_LIKE_PARTS = (
    "ALL", "CONSTRAINTS", "DISTRIBUTION", "PARTITIONS", "METADATA", "GENERATED", "OPTIONS", "WATERMARKS",
)  # fmt: skip


class CreateGrammar(SchemaGrammar):
    def create(self) -> Statement:
        """Read from CREATE on."""
        start = self.token.span
        self.expect("CREATE")
        or_replace = self.accept("OR", "REPLACE")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if system:
            self.expect("FUNCTION")
            return self._create_function(start, True, True)
        if self.accept("TABLE"):
            return self._create_table(start, temporary, or_replace)
        if or_replace:
            raise self.unexpected()
        if self.accept("VIEW"):
            return self._create_view(start, temporary)
        if self.accept("FUNCTION"):
            return self._create_function(start, temporary, False)
        if not temporary and self.accept("DATABASE"):
            guarded = self.accept("IF", "NOT", "EXISTS")
            name = self.dotted("a database")
            comment = self.comment()
            return ast.CreateDatabase(name, comment, self.with_options(), guarded, span=self.since(start))
        if not temporary and self.accept("CATALOG"):
            guarded = self.accept("IF", "NOT", "EXISTS")
            catalog = self.name("a catalog")
            comment = self.comment()
            return ast.CreateCatalog(catalog, comment, self.with_options(), guarded, span=self.since(start))
        raise self.unexpected()

    def _create_table(self, start: Span, temporary: bool, or_replace: bool) -> Statement:
        guarded = self.accept("IF", "NOT", "EXISTS")
        name = self.dotted("a table")
        parts = self.schema() if self.at("(") else None
        comment = self.comment()
        distribution = self.distribution() if self.accept("DISTRIBUTED") else None
        partitioned: tuple[str, ...] = ()
        if self.accept("PARTITIONED"):
            self.expect("BY")
            partitioned = self.in_parentheses(self.name)
        options = self.with_options()
        like = self._like() if self.accept("LIKE") else None
        query: Query | None = None
        if self.accept("AS"):
            query = self.query()
        if parts is not None and parts.names and (query is None or parts.columns):
            raise self.error(f"column '{parts.names[0]}' needs a type", self.previous.span)
        if parts is None and like is None and query is None and not options:
            raise self.unexpected()
        return ast.CreateTable(
            name,
            tuple(column for column, _ in parts.columns) if parts else (),
            tuple(parts.names) if parts else (),
            parts.watermark if parts else None,
            tuple(parts.keys) if parts else (),
            comment,
            distribution,
            partitioned,
            options,
            like,
            query,
            temporary,
            guarded,
            or_replace,
            span=self.since(start),
        )

    def _like(self) -> ast.Like:
        start = self.previous.span
        table = self.dotted("a table")
        options: list[ast.LikeOption] = []
        if self.accept("("):
            while (word := self.accept_any("INCLUDING", "EXCLUDING", "OVERWRITING")) is not None:
                place = self.previous.span
                options.append(ast.LikeOption(word, self.expect_any(*_LIKE_PARTS), span=self.since(place)))
            self.expect(")")
        return ast.Like(table, tuple(options), span=self.since(start))

    def _create_view(self, start: Span, temporary: bool) -> Statement:
        guarded = self.accept("IF", "NOT", "EXISTS")
        name = self.dotted("a view")
        columns = self.in_parentheses(lambda: (self.name("a column"), self.comment())) if self.at("(") else ()
        comment = self.comment()
        self.expect("AS")
        query = self.query()
        return ast.CreateView(name, query, columns, comment, temporary, guarded, span=self.since(start))

    def _create_function(self, start: Span, temporary: bool, system: bool) -> Statement:
        guarded = self.accept("IF", "NOT", "EXISTS")
        name = self.dotted("a function")
        self.expect("AS")
        identifier = self.string("the class or module path of the function, as a string")
        language = self.expect_any("JAVA", "SCALA", "PYTHON") if self.accept("LANGUAGE") else None
        resources = self.commas(self._resource) if self.accept("USING") else ()
        return ast.CreateFunction(
            name, identifier, language, resources, temporary, system, guarded, span=self.since(start)
        )

    def _resource(self) -> tuple[str, str]:
        return self.expect_any("JAR", "FILE", "ARCHIVE"), self.string("the path of the file, as a string")

    # -- ALTER

    def alter(self) -> Statement:
        start = self.token.span
        self.expect("ALTER")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if temporary or self.at("FUNCTION"):
            self.expect("FUNCTION")
            kind = "FUNCTION"
        else:
            kind = self.expect_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION")
        guarded = self.accept("IF", "EXISTS")
        name = self.dotted("a name")
        place = self.token.span
        action = self._alteration(kind)
        action = type(action)(**{**vars(action), "span": self.since(place)})
        return ast.Alter(kind, name, action, guarded, temporary, system, span=self.since(start))

    def _alteration(self, kind: str) -> ast.AlterAction:
        if kind == "FUNCTION":
            self.expect("AS")
            identifier = self.string("the class or module path of the function, as a string")
            language = self.expect_any("JAVA", "SCALA", "PYTHON") if self.accept("LANGUAGE") else None
            return ast.ChangeFunction(identifier, language)
        if kind == "VIEW" and self.accept("AS"):
            return ast.ChangeQuery(self.query())
        if kind in ("TABLE", "VIEW") and self.accept("RENAME"):
            if kind == "TABLE" and not self.at("TO"):
                column = self.dotted("a column")
                self.expect("TO")
                return ast.RenameColumn(column, self.name("a column"))
            self.expect("TO")
            return ast.RenameTo(self.dotted("a name"))
        if kind == "CATALOG" and self.accept("COMMENT"):
            return ast.ChangeComment(self.string("the comment"))
        if kind != "VIEW" and self.accept("SET"):
            return ast.SetOptions(self.options())
        if kind in ("TABLE", "CATALOG") and self.accept("RESET"):
            return ast.ResetOptions(self.in_parentheses(lambda: self.string("the key of an option, as a string")))
        if kind == "TABLE" and (word := self.accept_any("ADD", "MODIFY")) is not None:
            return self._change(word)
        if kind == "TABLE" and self.accept("DROP"):
            return self._drop_part()
        raise self.unexpected()

    def _change(self, word: str) -> ast.AlterAction:
        guarded = word == "ADD" and self.accept("IF", "NOT", "EXISTS")
        if word == "ADD" and self.accept("PARTITION"):
            return ast.ChangePartition("ADD", self.partition(), self.with_options(), guarded)
        if self.accept("DISTRIBUTION"):
            return ast.ChangeSchema(word, distribution=self.distribution())
        parts_read = self.schema(alter=True) if self.at("(") else None
        if parts_read is None:
            parts_read = SchemaParts()
            self.schema_part(parts_read, alter=True)
        return ast.ChangeSchema(word, tuple(parts_read.columns), parts_read.watermark, tuple(parts_read.keys))

    def _drop_part(self) -> ast.AlterAction:
        guarded = self.accept("IF", "EXISTS")
        if self.accept("PARTITION"):
            return ast.ChangePartition("DROP", self.partition(), (), guarded)
        if self.accept("PRIMARY", "KEY"):
            return ast.DropSchema("PRIMARY KEY")
        if self.accept("CONSTRAINT"):
            return ast.DropSchema("CONSTRAINT", (self.name("the name of the constraint"),))
        if self.accept("WATERMARK"):
            return ast.DropSchema("WATERMARK")
        if self.accept("DISTRIBUTION"):
            return ast.DropSchema("DISTRIBUTION")
        names = self.in_parentheses(self.name) if self.at("(") else (self.name("a column"),)
        return ast.DropSchema("COLUMNS", names)

    # -- DROP

    def drop(self) -> Statement:
        start = self.token.span
        self.expect("DROP")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if system:
            self.expect("FUNCTION")
            kind = "FUNCTION"
        elif temporary:
            kind = self.expect_any("TABLE", "VIEW", "FUNCTION")
        else:
            kind = self.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        guarded = self.accept("IF", "EXISTS")
        name = self.dotted("a name")
        cascade = None
        if kind == "DATABASE" and (word := self.accept_any("CASCADE", "RESTRICT")) is not None:
            cascade = word == "CASCADE"
        return ast.Drop(kind, name, guarded, temporary, system, cascade, span=self.since(start))
