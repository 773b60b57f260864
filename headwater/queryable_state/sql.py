"""SQL over the state of a running job: one consistent checkpoint of all slots, in DuckDB."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from headwater.common.errors import ConfigurationError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state.pinned import PinnedEpoch
from headwater.queryable_state.reader import StateReader


class SqlResult(NamedTuple):
    """The rows of a query, and the epoch that they are of."""

    epoch: int | None
    columns: list[str]
    rows: list[tuple[Any, ...]]


def run_sql(reader: StateReader, query: str) -> SqlResult:
    """Run `select ... from operator.state ...`. An operator is given by its uid or name, quoted where SQL needs it.

    All tables are read as of one checkpoint. Raises `QueryError`, or `ConfigurationError` without DuckDB.
    """
    try:
        import duckdb
    except ImportError:
        raise ConfigurationError(
            "SQL over state needs DuckDB, which is not installed; install it with: pip install 'headwater[duckdb]'"
        ) from None
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET enable_external_access = false")
        tables = _tables(connection, query)
        epoch = _load(connection, reader, tables) if tables else None
        result = connection.execute(query)
        return SqlResult(epoch, [column[0] for column in result.description or ()], result.fetchall())
    except duckdb.Error as error:
        raise QueryError(QueryProblem.BAD_REQUEST, f"the query cannot be run: {error}") from None
    finally:
        connection.close()


def _tables(connection: Any, query: str) -> list[tuple[str, str]]:
    """Return (operator, state) of each table that the query names. DuckDB itself reads the query."""
    ((serialized,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(serialized)
    if parsed.get("error"):
        raise QueryError(QueryProblem.BAD_REQUEST, f"the query cannot be run: {parsed.get('error_message')}")
    return sorted({(each["schema_name"], each["table_name"]) for each in _base_tables(parsed) if each["schema_name"]})


def _base_tables(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _base_tables(each)


def _load(connection: Any, reader: StateReader, tables: Iterable[tuple[str, str]]) -> int:
    with reader.pinned({operator for operator, _ in tables}) as pinned:
        for index, (operator, state) in enumerate(tables):
            connection.register(f"state_{index}", _table(pinned, operator, state))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(operator)}")
            connection.execute(f"CREATE VIEW {_quoted(operator)}.{_quoted(state)} AS SELECT * FROM state_{index}")
        return pinned.epoch


def _table(pinned: PinnedEpoch, operator: str, state: str) -> Any:
    """Return the state as one table. A column is JSON text in all batches, or has a type that fits all of them."""
    import pyarrow as pa

    tables = _read(pinned, operator, state)
    mixed = [name for name in tables[0].column_names if not _fit([table.select([name]) for table in tables])]
    if mixed:
        tables = _read(pinned, operator, state, mixed)
    return pa.concat_tables(tables, promote_options="permissive")


def _read(pinned: PinnedEpoch, operator: str, state: str, as_json: Collection[str] = ()) -> list[Any]:
    """Return the batches that have rows, or one without."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(batch).read_all() for batch in pinned.batches(operator, state, as_json)]
    return [table for table in tables if table.num_rows] or tables[:1]


def _fit(tables: list[Any]) -> bool:
    """Tell whether these tables, of one column each, mean the same by it. One with nulls only fits any."""
    import pyarrow as pa

    from headwater.runtime.slot.query.arrow import JSON_COLUMN

    fields = [table.schema.field(0) for table in tables]
    if len({field.metadata == JSON_COLUMN for field in fields if field.type != pa.null()}) > 1:
        return False
    try:
        pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
