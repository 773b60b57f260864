"""The grammar of statements: which one is it?"""

from __future__ import annotations

from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Expression, Statement
from headwater.table.parser.create_grammar import CreateGrammar
from headwater.table.parser.tokens import Kind

_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_STATEMENTS = (
    "SELECT", "WITH", "VALUES", "CREATE", "ALTER", "DROP", "INSERT", "SHOW", "DESCRIBE", "EXPLAIN", "SET", "RESET",
    "USE", "EXECUTE", "BEGIN", "LOAD", "UNLOAD", "ADD", "REMOVE", "STOP", "ANALYZE", "TRUNCATE", "DELETE", "UPDATE",
    "CALL", "DESC", "TABLE",
)  # fmt: skip
_SHOW_SIMPLE = ("JARS", "MODULES", "FULL MODULES", "JOBS", "CURRENT CATALOG", "CURRENT DATABASE")
_SHOW_LISTS = ("CATALOGS", "DATABASES", "TABLES", "VIEWS", "FUNCTIONS", "USER FUNCTIONS", "PROCEDURES", "MODELS")


class StatementGrammar(CreateGrammar):
    def statements(self) -> tuple[Statement, ...]:
        """Read all statements of a script, with semicolons between them."""
        found: list[Statement] = []
        while True:
            while self.accept(";"):
                pass
            if self.at_end():
                return tuple(found)
            found.append(self.statement())
            if not self.at_end() and not self.at(";"):
                self.accept(";")
                raise self.unexpected()

    def statement(self) -> Statement:
        start = self.token.span
        word = self.token.upper
        if word in ("SELECT", "WITH", "VALUES", "TABLE") or self.at("("):
            query = self.query()
            return ast.QueryStatement(query, span=self.since(start))
        match word:
            case "CREATE":
                return self.create()
            case "ALTER":
                return self.alter()
            case "DROP":
                return self.drop()
            case "INSERT":
                return self._insert()
            case "SHOW":
                return self._show()
            case "DESCRIBE" | "DESC":
                return self._describe()
            case "EXPLAIN":
                return self._explain()
            case "USE":
                return self._use()
            case "SET" | "RESET":
                return self._setting()
            case "EXECUTE":
                return self._execute()
            case "BEGIN":
                return self._statement_set()
            case "ANALYZE":
                return self._analyze()
        simple = self._simple()
        if simple is not None:
            return simple
        self.forget()
        for known in _STATEMENTS:
            self.accept(known)
        raise self.unexpected()

    def _simple(self) -> Statement | None:
        start = self.token.span
        if self.accept("LOAD"):
            self.expect("MODULE")
            name = self.name("a module")
            return ast.LoadModule(name, self.with_options(), span=self.since(start))
        if self.accept("UNLOAD"):
            self.expect("MODULE")
            return ast.UnloadModule(self.name("a module"), span=self.since(start))
        if (action := self.accept_any("ADD", "REMOVE")) is not None:
            self.expect("JAR")
            return ast.Jar(action, self.string("the path of the file, as a string"), span=self.since(start))
        if self.accept("STOP"):
            self.expect("JOB")
            job = self.string("the id of the job, as a string")
            savepoint = self.accept("WITH", "SAVEPOINT")
            return ast.StopJob(job, savepoint, self.accept("WITH", "DRAIN"), span=self.since(start))
        if self.accept("TRUNCATE"):
            self.expect("TABLE")
            return ast.Truncate(self.dotted("a table"), span=self.since(start))
        if self.accept("DELETE"):
            self.expect("FROM")
            table = self.dotted("a table")
            where = self.expression() if self.accept("WHERE") else None
            return ast.Delete(table, where, span=self.since(start))
        if self.accept("UPDATE"):
            table = self.dotted("a table")
            self.expect("SET")
            assignments = self.commas(self._assignment)
            where = self.expression() if self.accept("WHERE") else None
            return ast.Update(table, assignments, where, span=self.since(start))
        if self.accept("CALL"):
            name_parts = self.dotted("a procedure")
            self.expect("(")
            arguments: tuple[Expression, ...] = () if self.at(")") else self.commas(self._argument)
            self.expect(")")
            return ast.CallProcedure(name_parts, arguments, span=self.since(start))
        return None

    def _assignment(self) -> tuple[str, Expression]:
        name = self.name("a column")
        self.expect("=")
        return name, self.expression()

    # -- INSERT

    def _insert(self) -> ast.Insert:
        start = self.token.span
        self.expect("INSERT")
        overwrite = self.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
        target = self.token.span
        table = self.dotted("a table")
        target = self.since(target)
        hints = self._hints()
        partition = self.partition() if self.accept("PARTITION") else ()
        columns: tuple[tuple[str, ...], ...] = ()
        if self.at("(") and not self.at_query():
            columns = self.in_parentheses(lambda: self.dotted("a column"))
        if not self.at_query():
            for word in ("SELECT", "VALUES", "WITH", "TABLE"):
                self.accept(word)
            raise self.unexpected()
        return ast.Insert(table, self.query(), columns, partition, overwrite, hints, target, span=self.since(start))

    def _statement_set(self) -> ast.StatementSet:
        start = self.token.span
        self.expect("BEGIN")
        if self.at("STATEMENT"):
            self.expect("STATEMENT", "SET", ";")
        inserts: list[ast.Insert] = []
        while not self.at("END"):
            if not self.at("INSERT"):
                self.accept("INSERT")
                self.accept("END")
                raise self.unexpected()
            inserts.append(self._insert())
            self.expect(";")
        if not inserts:
            self.accept("INSERT")
            raise self.unexpected()
        self.expect("END")
        return ast.StatementSet(tuple(inserts), span=self.since(start))

    def _execute(self) -> Statement:
        start = self.token.span
        self.expect("EXECUTE")
        if self.at("STATEMENT"):
            self.expect("STATEMENT", "SET")
            return ast.Execute(self._statement_set(), span=self.since(start))
        return ast.Execute(self._runnable(), span=self.since(start))

    def _runnable(self) -> Statement:
        if self.at("INSERT"):
            return self._insert()
        if self.accept("STATEMENT"):
            self.expect("SET")
            return self._statement_set()
        if self.at("CREATE"):
            return self.create()
        start = self.token.span
        query = self.query()
        return ast.QueryStatement(query, span=self.since(start))

    def _explain(self) -> Statement:
        start = self.token.span
        self.expect("EXPLAIN")
        details: tuple[str, ...] = ()
        if self.accept("PLAN"):
            self.expect("FOR")
        elif (first := self.accept_any(*_DETAILS)) is not None:
            details = (first, *(self.commas(lambda: self.expect_any(*_DETAILS)) if self.accept(",") else ()))
        return ast.Explain(self._runnable(), details, span=self.since(start))

    # -- Questions

    def _show(self) -> Statement:
        start = self.token.span
        self.expect("SHOW")
        for what in _SHOW_SIMPLE:
            if self.accept(*what.split()):
                return ast.Show(what, span=self.since(start))
        if self.accept("CREATE"):
            kind = self.expect_any("TABLE", "VIEW", "CATALOG")
            return ast.Show(f"CREATE {kind}", self.dotted("a name"), span=self.since(start))
        if self.accept("PARTITIONS"):
            name = self.dotted("a table")
            partition = self.partition() if self.accept("PARTITION") else ()
            return ast.Show("PARTITIONS", name, partition=partition, span=self.since(start))
        if self.accept("COLUMNS"):
            preposition = self.expect_any("FROM", "IN")
            name = self.dotted("a table")
            return ast.Show("COLUMNS", name, preposition, *self._like_filter(), span=self.since(start))
        for what in _SHOW_LISTS:
            if self.accept(*what.split()):
                name = ()
                found = None if what == "CATALOGS" else self.accept_any("FROM", "IN")
                if found is not None:
                    name = self.dotted("a catalog or a database")
                return ast.Show(what, name, found, *self._like_filter(), span=self.since(start))
        raise self.unexpected()

    def _like_filter(self) -> tuple[str | None, bool, bool]:
        """(pattern, whether case does not matter, whether it is negated)"""
        negated = self.accept("NOT")
        word = self.accept_any("LIKE", "ILIKE")
        if word is None:
            if negated:
                raise self.unexpected()
            return None, False, False
        return self.string("a pattern, as a string"), word == "ILIKE", negated

    def _describe(self) -> Statement:
        start = self.token.span
        self.advance()
        kind = "TABLE"
        for word in ("CATALOG", "DATABASE", "FUNCTION", "JOB", "MODEL"):
            if self.at(word) and self.ahead().kind is not Kind.END and self.ahead().text not in (".", ";"):
                self.advance()
                kind = word
                break
        extended = self.accept("EXTENDED")
        name = (self.string("the id of the job, as a string"),) if kind == "JOB" else self.dotted("a name")
        return ast.Describe(kind, name, extended, span=self.since(start))

    # -- Settings

    def _use(self) -> Statement:
        start = self.token.span
        self.expect("USE")
        if self.accept("CATALOG"):
            return ast.Use("CATALOG", ((self.name("a catalog"),),), span=self.since(start))
        if self.accept("MODULES"):
            return ast.Use("MODULES", self.commas(lambda: (self.name("a module"),)), span=self.since(start))
        return ast.Use("DATABASE", (self.dotted("a database"),), span=self.since(start))

    def _setting(self) -> Statement:
        start = self.token.span
        setting = self.advance().upper == "SET"
        if self.token.kind is Kind.END or self.at(";"):
            return ast.SetOption(span=start) if setting else ast.ResetOption(span=start)
        key = self.string("the key of an option, as a string")
        if not setting:
            return ast.ResetOption(key, span=self.since(start))
        self.expect("=")
        return ast.SetOption(key, self.string("the option's value, as a string"), span=self.since(start))

    def _analyze(self) -> Statement:
        start = self.token.span
        self.expect("ANALYZE", "TABLE")
        table = self.dotted("a table")
        partition = self.in_parentheses(self._analyzed_partition) if self.accept("PARTITION") else ()
        self.expect("COMPUTE", "STATISTICS")
        columns: tuple[str, ...] | None = ()
        if self.accept("FOR"):
            if self.accept("ALL"):
                self.expect("COLUMNS")
                columns = None
            else:
                self.expect("COLUMNS")
                columns = self.commas(self.name)
        return ast.Analyze(table, partition, columns, span=self.since(start))

    def _analyzed_partition(self) -> tuple[str, Expression | None]:
        name = self.name("a column")
        return name, (self._sum() if self.accept("=") else None)
