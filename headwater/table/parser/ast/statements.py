"""Statements: definitions, insertions, questions about the catalog, settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.table.parser.ast.base import DataType, Expression, Node, Query, Statement
from headwater.table.parser.ast.queries import Hint
from headwater.table.parser.tokens import NOWHERE, Span

Options = tuple[tuple[str, str], ...]
"""`'key' = 'value'` of WITH, in order."""


@dataclass(frozen=True)
class QueryStatement(Statement):
    query: Query


@dataclass(frozen=True)
class Column(Node):
    """Any of the three kinds of column: physical, computed (`expression`), metadata."""

    name: str
    type: DataType | None = None
    expression: Expression | None = None
    metadata: bool = False
    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None
    primary_key: bool = False


@dataclass(frozen=True)
class Watermark(Node):
    column: tuple[str, ...]
    expression: Expression


@dataclass(frozen=True)
class Key(Node):
    """PRIMARY KEY or UNIQUE."""

    kind: str
    columns: tuple[str, ...]
    name: str | None = None
    enforced: bool = False


@dataclass(frozen=True)
class Distribution(Node):
    """DISTRIBUTED BY HASH(a) INTO 4 BUCKETS."""

    columns: tuple[str, ...] = ()
    kind: str | None = None
    buckets: int | None = None


@dataclass(frozen=True)
class LikeOption(Node):
    """INCLUDING / EXCLUDING / OVERWRITING, and of what: ALL, CONSTRAINTS, OPTIONS, …"""

    strategy: str
    part: str


@dataclass(frozen=True)
class Like(Node):
    table: tuple[str, ...]
    options: tuple[LikeOption, ...] = ()


@dataclass(frozen=True)
class CreateTable(Statement):
    name: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    column_names: tuple[str, ...] = ()
    """Of CREATE TABLE t (a, b) AS SELECT: names without types."""
    watermark: Watermark | None = None
    keys: tuple[Key, ...] = ()
    comment: str | None = None
    distribution: Distribution | None = None
    partitioned_by: tuple[str, ...] = ()
    options: Options = ()
    like: Like | None = None
    query: Query | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    name: tuple[str, ...]
    query: Query
    columns: tuple[tuple[str, str | None], ...] = ()
    """(name, comment) of each."""
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    name: tuple[str, ...]
    identifier: str
    language: str | None = None
    resources: tuple[tuple[str, str], ...] = ()
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    name: tuple[str, ...]
    comment: str | None = None
    options: Options = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateCatalog(Statement):
    name: str
    comment: str | None = None
    options: Options = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterAction(Node):
    """One change of ALTER."""


@dataclass(frozen=True)
class RenameTo(AlterAction):
    name: tuple[str, ...]


@dataclass(frozen=True)
class SetOptions(AlterAction):
    options: Options


@dataclass(frozen=True)
class ResetOptions(AlterAction):
    keys: tuple[str, ...]


@dataclass(frozen=True)
class RenameColumn(AlterAction):
    column: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class ChangeSchema(AlterAction):
    """ADD or MODIFY (kind) of columns, a watermark, keys. Places are FIRST, `AFTER x`, or none."""

    kind: str
    columns: tuple[tuple[Column, str | None], ...] = ()
    watermark: Watermark | None = None
    keys: tuple[Key, ...] = ()
    distribution: Distribution | None = None


@dataclass(frozen=True)
class DropSchema(AlterAction):
    """DROP of columns, or of the watermark, the primary key, a constraint, the distribution (`part`)."""

    part: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangePartition(AlterAction):
    """ADD or DROP of PARTITION (a = 1)."""

    kind: str
    partition: tuple[tuple[str, Expression], ...]
    options: Options = ()
    guarded: bool = False
    """IF NOT EXISTS of ADD, IF EXISTS of DROP."""


@dataclass(frozen=True)
class ChangeQuery(AlterAction):
    """ALTER VIEW v AS query."""

    query: Query


@dataclass(frozen=True)
class ChangeFunction(AlterAction):
    identifier: str
    language: str | None = None


@dataclass(frozen=True)
class ChangeComment(AlterAction):
    comment: str


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER of a TABLE, VIEW, FUNCTION, DATABASE or CATALOG (`kind`)."""

    kind: str
    name: tuple[str, ...]
    action: AlterAction
    if_exists: bool = False
    temporary: bool = False
    system: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of a TABLE, VIEW, FUNCTION, DATABASE, CATALOG or MODULE (`kind`)."""

    kind: str
    name: tuple[str, ...]
    if_exists: bool = False
    temporary: bool = False
    system: bool = False
    cascade: bool | None = None
    """Of a database: CASCADE, RESTRICT or neither."""


@dataclass(frozen=True)
class Show(Statement):
    """SHOW of what there is: TABLES, VIEWS, CATALOGS, CURRENT DATABASE, CREATE TABLE (with `name`), COLUMNS, …"""

    what: str
    name: tuple[str, ...] = ()
    """The object or, after FROM, the catalog and database to look into."""
    preposition: str | None = None
    """FROM or IN, if one stands before `name`."""
    like: str | None = None
    case_insensitive: bool = False
    negated: bool = False
    partition: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE of a table or view (kind TABLE), a CATALOG, DATABASE, FUNCTION, JOB or MODEL."""

    kind: str
    name: tuple[str, ...]
    extended: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE of a CATALOG, DATABASE or MODULES."""

    kind: str
    names: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SetOption(Statement):
    """SET, SET 'key' = 'value'."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Statement):
    key: str | None = None


@dataclass(frozen=True)
class Insert(Statement):
    table: tuple[str, ...]
    query: Query
    columns: tuple[tuple[str, ...], ...] = ()
    partition: tuple[tuple[str, Expression], ...] = ()
    overwrite: bool = False
    hints: tuple[Hint, ...] = ()
    table_span: Span = field(default=NOWHERE, compare=False)
    """Where the table's name stands."""


@dataclass(frozen=True)
class StatementSet(Statement):
    statements: tuple[Insert, ...]


@dataclass(frozen=True)
class Explain(Statement):
    statement: Statement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Execute(Statement):
    """EXECUTE of a statement: the same as the statement, said at more length."""

    statement: Statement


@dataclass(frozen=True)
class LoadModule(Statement):
    name: str
    options: Options = ()


@dataclass(frozen=True)
class UnloadModule(Statement):
    name: str


@dataclass(frozen=True)
class Jar(Statement):
    """ADD JAR or REMOVE JAR."""

    action: str
    path: str


@dataclass(frozen=True)
class StopJob(Statement):
    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False


@dataclass(frozen=True)
class Analyze(Statement):
    """ANALYZE TABLE t COMPUTE STATISTICS."""

    table: tuple[str, ...]
    partition: tuple[tuple[str, Expression | None], ...] = ()
    columns: tuple[str, ...] | None = ()
    """() without FOR COLUMNS; None for ALL COLUMNS."""


@dataclass(frozen=True)
class Truncate(Statement):
    table: tuple[str, ...]


@dataclass(frozen=True)
class Delete(Statement):
    table: tuple[str, ...]
    where: Expression | None = None


@dataclass(frozen=True)
class Update(Statement):
    table: tuple[str, ...]
    assignments: tuple[tuple[str, Expression], ...]
    where: Expression | None = None


@dataclass(frozen=True)
class CallProcedure(Statement):
    name: tuple[str, ...]
    arguments: tuple[Expression, ...] = ()
