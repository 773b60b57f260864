"""Runs in PyFlink's Python, for record_flink_functions.py: computes calls of functions and writes types and values.

Many calls go into one query, because starting a query takes seconds. If a query fails, its calls are halved until
the one that fails is alone.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

AT_ONCE = 60


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.get_config().set_local_timezone(request["zone"])
    names = ", ".join(f"`{each}`" for each in ["id", *request["columns"]])
    # The limit keeps the planner from computing calls on constants by itself: it does so with other code.
    rows = ",\n".join(f"({at}, {', '.join(row)})" for at, row in enumerate(request["rows"]))
    environment.execute_sql(
        f"CREATE TEMPORARY VIEW samples AS SELECT * FROM (VALUES {rows}) AS V({names}) ORDER BY `id` LIMIT 1000"
    )
    worker = Worker(environment)
    found: dict[str, Any] = {}
    for calls, query in (
        (request["calls"], "SELECT `id`, {} FROM samples"),
        (request["aggregates"], request["aggregate_query"]),
    ):
        allowed = [each for each in calls if worker.bind(each, query, found)]
        for at in range(0, len(allowed), AT_ONCE):
            worker.run(allowed[at : at + AT_ONCE], query, found)
            print(f"{len(found)} calls done", flush=True)
    types = {query: worker.type_of(query) for query in request["type_queries"]}
    Path(sys.argv[2]).write_text(json.dumps({"calls": found, "types": types}), "utf-8")


class Worker:
    def __init__(self, environment: TableEnvironment) -> None:
        self._environment = environment

    def bind(self, call: str, query: str, found: dict[str, Any]) -> bool:
        """Ask for the type. Note it if Flink refuses the call."""
        try:
            self._environment.sql_query(query.format(call))
        except Exception as error:
            found[call] = {"refused": reason(error)}
            return False
        return True

    def type_of(self, query: str) -> str | None:
        """The type of a query's only column, or None if Flink refuses it."""
        try:
            schema = self._environment.sql_query(query)._j_table.getResolvedSchema()
        except Exception:
            return None
        name: str = schema.getColumnDataTypes().get(0).getLogicalType().asSummaryString()
        return name

    def run(self, calls: list[str], query: str, found: dict[str, Any]) -> None:
        if not calls:
            return
        try:
            table = self._environment.sql_query(query.format(", ".join(calls)))
            schema = table._j_table.getResolvedSchema()
            types = [each.getLogicalType().asSummaryString() for each in schema.getColumnDataTypes()]
            rows = sorted(self._rows(table), key=lambda row: row[0] if row[0] is not None else -1)
        except Exception as error:
            if len(calls) == 1:
                found[calls[0]] = {"failed": reason(error)}
                return
            middle = len(calls) // 2
            self.run(calls[:middle], query, found)
            self.run(calls[middle:], query, found)
            return
        for at, call in enumerate(calls, 1):
            found[call] = {"type": types[at], "values": [row[at] for row in rows]}

    def _rows(self, table: Any) -> list[list[Any]]:
        iterator = table._j_table.execute().collect()
        found = []
        while iterator.hasNext():
            row = iterator.next()
            found.append([plain(row.getField(at)) for at in range(row.getArity())])
        iterator.close()
        return found


def plain(value: Any) -> Any:
    """A Java value as JSON keeps it; `samples.canonical` gives the same for Arrow's and Spark's."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    kind = type(value).__name__
    if kind == "JavaArray" or kind == "JavaList":
        return [plain(each) for each in value]
    if kind == "JavaMap":
        return sorted(([plain(key), plain(value[key])] for key in value), key=repr)
    name = value.getClass().getName() if hasattr(value, "getClass") else ""
    if name.endswith(".Row"):
        return [plain(value.getField(at)) for at in range(value.getArity())]
    return moment(value.toString() if name else str(value), name)


def moment(text: str, name: str) -> str:
    """Java's texts of times with all their digits."""
    if name.endswith(("LocalDateTime", "Instant")):
        try:
            parsed = datetime.datetime.fromisoformat(text.removesuffix("Z"))
        except ValueError:
            return text
        return parsed.isoformat(timespec="microseconds")
    if name.endswith("LocalTime"):
        return datetime.time.fromisoformat(text).isoformat(timespec="milliseconds")
    return text


def reason(error: Exception) -> str:
    """The innermost cause, without the stack."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    causes = [line for line in lines if line.startswith("Caused by")]
    text = (causes or lines[1:] or lines or [repr(error)])[-1 if causes else 0]
    return re.sub(r"^(Caused by)?:? *", "", text)[:200]


if __name__ == "__main__":
    main()
