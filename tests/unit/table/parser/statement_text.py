"""Statements as text that parses to the same tree: only tests print statements, the product prints queries."""

from __future__ import annotations

from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Expression, Statement
from headwater.table.parser.printing.names import data_type, dotted, quoted, text
from headwater.table.parser.printing.queries import print_expression, print_hints, print_query


def print_statement(statement: Statement) -> str:
    match statement:
        case ast.QueryStatement():
            return print_query(statement.query)
        case ast.CreateTable():
            return _create_table(statement)
        case ast.CreateView():
            return _create_view(statement)
        case ast.CreateFunction():
            return _create_function(statement)
        case ast.CreateDatabase() | ast.CreateCatalog():
            database = isinstance(statement, ast.CreateDatabase)
            name = dotted(statement.name) if isinstance(statement, ast.CreateDatabase) else quoted(statement.name)
            return _join(
                f"CREATE {'DATABASE' if database else 'CATALOG'}",
                _when(statement.if_not_exists, "IF NOT EXISTS"),
                name,
                _comment(statement.comment),
                print_options("WITH", statement.options),
            )
        case ast.Alter():
            return _alter(statement)
        case ast.Drop():
            cascade = "" if statement.cascade is None else "CASCADE" if statement.cascade else "RESTRICT"
            return _join("DROP", _scope(statement), statement.kind, _when(statement.if_exists, "IF EXISTS"),
                         dotted(statement.name), cascade)  # fmt: skip
        case ast.Insert():
            return _insert(statement)
        case ast.StatementSet():
            inserts = " ".join(f"{_insert(each)};" for each in statement.statements)
            return f"BEGIN STATEMENT SET; {inserts} END"
        case ast.Execute():
            if isinstance(statement.statement, ast.StatementSet):
                inserts = " ".join(f"{_insert(each)};" for each in statement.statement.statements)
                return f"EXECUTE STATEMENT SET BEGIN {inserts} END"
            return f"EXECUTE {print_statement(statement.statement)}"
        case ast.Explain():
            if isinstance(statement.statement, ast.StatementSet):
                inserts = " ".join(f"{_insert(each)};" for each in statement.statement.statements)
                return _join("EXPLAIN", ", ".join(statement.details), f"STATEMENT SET BEGIN {inserts} END")
            return _join("EXPLAIN", ", ".join(statement.details), print_statement(statement.statement))
        case _:
            return _small(statement)


def _small(statement: Statement) -> str:
    match statement:
        case ast.Show():
            like = ""
            if statement.like is not None:
                word = "ILIKE" if statement.case_insensitive else "LIKE"
                like = f"{'NOT ' if statement.negated else ''}{word} {text(statement.like)}"
            partition = _partition(statement.partition)
            return _join("SHOW", statement.what, statement.preposition or "", dotted(statement.name), like, partition)
        case ast.Describe():
            kind = "" if statement.kind == "TABLE" else statement.kind
            name = text(statement.name[0]) if kind == "JOB" else dotted(statement.name)
            return _join("DESCRIBE", kind, _when(statement.extended, "EXTENDED"), name)
        case ast.Use():
            kind = "" if statement.kind == "DATABASE" else statement.kind
            return _join("USE", kind, ", ".join(map(dotted, statement.names)))
        case ast.SetOption():
            return "SET" if statement.key is None else f"SET {text(statement.key)} = {text(statement.value or '')}"
        case ast.ResetOption():
            return "RESET" if statement.key is None else f"RESET {text(statement.key)}"
        case ast.LoadModule():
            return _join("LOAD MODULE", quoted(statement.name), print_options("WITH", statement.options))
        case ast.UnloadModule():
            return f"UNLOAD MODULE {quoted(statement.name)}"
        case ast.Jar():
            return f"{statement.action} JAR {text(statement.path)}"
        case ast.StopJob():
            savepoint = _when(statement.with_savepoint, "WITH SAVEPOINT")
            return _join("STOP JOB", text(statement.job_id), savepoint, _when(statement.with_drain, "WITH DRAIN"))
        case ast.Analyze():
            return _analyze(statement)
        case ast.Truncate():
            return f"TRUNCATE TABLE {dotted(statement.table)}"
        case ast.Delete():
            return _join("DELETE FROM", dotted(statement.table), _where(statement.where))
        case ast.Update():
            sets = ", ".join(f"{quoted(name)} = {print_expression(value)}" for name, value in statement.assignments)
            return _join("UPDATE", dotted(statement.table), "SET", sets, _where(statement.where))
        case ast.CallProcedure():
            return f"CALL {dotted(statement.name)}({', '.join(map(print_expression, statement.arguments))})"
    raise TypeError(f"{type(statement).__name__} is no statement")


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _when(condition: bool, words: str) -> str:
    return words if condition else ""


def _scope(statement: ast.Alter | ast.Drop) -> str:
    return _join(_when(statement.temporary, "TEMPORARY"), _when(statement.system, "SYSTEM"))


def _comment(comment: str | None) -> str:
    return f"COMMENT {text(comment)}" if comment is not None else ""


def _where(condition: Expression | None) -> str:
    return f"WHERE {print_expression(condition)}" if condition is not None else ""


def _names(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quoted, names))})"


def print_options(word: str, options: ast.Options) -> str:
    if not options:
        return ""
    return f"{word} ({', '.join(f'{text(key)} = {text(value)}' for key, value in options)})"


def _partition(partition: tuple[tuple[str, Expression], ...]) -> str:
    if not partition:
        return ""
    return f"PARTITION ({', '.join(f'{quoted(name)} = {print_expression(value)}' for name, value in partition)})"


def print_column(column: ast.Column) -> str:
    """A column as CREATE TABLE has it."""
    parts = [quoted(column.name)]
    if column.expression is not None:
        parts.append(f"AS {print_expression(column.expression)}")
    elif column.type is not None:
        parts.append(data_type(column.type))
    if column.metadata:
        parts.append("METADATA")
        if column.metadata_key is not None:
            parts.append(f"FROM {text(column.metadata_key)}")
        parts.append(_when(column.virtual, "VIRTUAL"))
    parts.append(_when(column.primary_key, "PRIMARY KEY NOT ENFORCED"))
    return _join(*parts, _comment(column.comment))


def _key(key: ast.Key) -> str:
    name = f"CONSTRAINT {quoted(key.name)}" if key.name is not None else ""
    return _join(name, key.kind, _names(key.columns), _when(not key.enforced, "NOT ENFORCED"))


def _watermark(watermark: ast.Watermark) -> str:
    return f"WATERMARK FOR {dotted(watermark.column)} AS {print_expression(watermark.expression)}"


def _distribution(word: str, distribution: ast.Distribution) -> str:
    by = _join("BY", distribution.kind or "", _names(distribution.columns)) if distribution.columns else ""
    into = f"INTO {distribution.buckets} BUCKETS" if distribution.buckets is not None else ""
    return _join(word, by, into)


def _create_table(table: ast.CreateTable) -> str:
    parts = [print_column(column) for column in table.columns]
    parts += [quoted(name) for name in table.column_names]
    parts += [_watermark(table.watermark)] if table.watermark is not None else []
    parts += [_key(key) for key in table.keys]
    like = ""
    if table.like is not None:
        options = " ".join(f"{option.strategy} {option.part}" for option in table.like.options)
        like = _join("LIKE", dotted(table.like.table), f"({options})" if options else "")
    return _join(
        "CREATE",
        _when(table.or_replace, "OR REPLACE"),
        _when(table.temporary, "TEMPORARY"),
        "TABLE",
        _when(table.if_not_exists, "IF NOT EXISTS"),
        dotted(table.name),
        f"({', '.join(parts)})" if parts else "",
        _comment(table.comment),
        _distribution("DISTRIBUTED", table.distribution) if table.distribution is not None else "",
        f"PARTITIONED BY {_names(table.partitioned_by)}" if table.partitioned_by else "",
        print_options("WITH", table.options),
        like,
        f"AS {print_query(table.query)}" if table.query is not None else "",
    )


def _create_view(view: ast.CreateView) -> str:
    columns = ", ".join(_join(quoted(name), _comment(comment)) for name, comment in view.columns)
    return _join(
        "CREATE",
        _when(view.temporary, "TEMPORARY"),
        "VIEW",
        _when(view.if_not_exists, "IF NOT EXISTS"),
        dotted(view.name),
        f"({columns})" if columns else "",
        _comment(view.comment),
        f"AS {print_query(view.query)}",
    )


def _create_function(function: ast.CreateFunction) -> str:
    resources = ", ".join(f"{kind} {text(path)}" for kind, path in function.resources)
    return _join(
        "CREATE",
        _when(function.temporary, "TEMPORARY"),
        _when(function.system, "SYSTEM"),
        "FUNCTION",
        _when(function.if_not_exists, "IF NOT EXISTS"),
        dotted(function.name),
        f"AS {text(function.identifier)}",
        f"LANGUAGE {function.language}" if function.language is not None else "",
        f"USING {resources}" if resources else "",
    )


def _alter(alter: ast.Alter) -> str:
    exists = _when(alter.if_exists, "IF EXISTS")
    return _join("ALTER", _scope(alter), alter.kind, exists, dotted(alter.name), _action(alter.action))


def _action(action: ast.AlterAction) -> str:
    match action:
        case ast.RenameTo():
            return f"RENAME TO {dotted(action.name)}"
        case ast.RenameColumn():
            return f"RENAME {dotted(action.column)} TO {quoted(action.name)}"
        case ast.SetOptions():
            return print_options("SET", action.options) or "SET ()"
        case ast.ResetOptions():
            return f"RESET ({', '.join(map(text, action.keys))})"
        case ast.ChangeSchema():
            return _change_schema(action)
        case ast.DropSchema():
            if action.part == "COLUMNS":
                return f"DROP {_names(action.names)}"
            return _join("DROP", action.part, ", ".join(map(quoted, action.names)))
        case ast.ChangePartition():
            guard = _when(action.guarded, "IF NOT EXISTS" if action.kind == "ADD" else "IF EXISTS")
            return _join(action.kind, guard, _partition(action.partition), print_options("WITH", action.options))
        case ast.ChangeQuery():
            return f"AS {print_query(action.query)}"
        case ast.ChangeFunction():
            language = f"LANGUAGE {action.language}" if action.language is not None else ""
            return _join(f"AS {text(action.identifier)}", language)
        case ast.ChangeComment():
            return f"COMMENT {text(action.comment)}"
    raise TypeError(f"{type(action).__name__} is no change")


def _change_schema(action: ast.ChangeSchema) -> str:
    if action.distribution is not None:
        return f"{action.kind} {_distribution('DISTRIBUTION', action.distribution)}"
    parts = []
    for column, place in action.columns:
        after = f"AFTER {quoted(place.removeprefix('AFTER '))}" if place and place != "FIRST" else place or ""
        parts.append(_join(print_column(column), after))
    parts += [_watermark(action.watermark)] if action.watermark is not None else []
    parts += [_key(key) for key in action.keys]
    return f"{action.kind} ({', '.join(parts)})"


def _insert(insert: ast.Insert) -> str:
    columns = f"({', '.join(map(dotted, insert.columns))})" if insert.columns else ""
    return _join(
        "INSERT",
        "OVERWRITE" if insert.overwrite else "INTO",
        dotted(insert.table),
        print_hints(insert.hints) if insert.hints else "",
        _partition(insert.partition),
        columns,
        print_query(insert.query),
    )


def _analyze(analyze: ast.Analyze) -> str:
    parts = [
        quoted(name) + (f" = {print_expression(value)}" if value is not None else "")
        for name, value in analyze.partition
    ]
    columns = "FOR ALL COLUMNS" if analyze.columns is None else ""
    if analyze.columns:
        columns = f"FOR COLUMNS {', '.join(map(quoted, analyze.columns))}"
    partition = f"PARTITION ({', '.join(parts)})" if parts else ""
    return _join("ANALYZE TABLE", dotted(analyze.table), partition, "COMPUTE STATISTICS", columns)
