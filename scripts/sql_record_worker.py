"""Runs queries on PyFlink in batch mode and writes their types and rows as JSON lines. Called by sql_record.py.

Runs with the Python of an environment that has PyFlink: it imports nothing of headwater but one file by path.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

JOB_SIZE = 15
FOLDER = Path(__file__).resolve().parent.parent / "tests" / "parity" / "sql"


def load(name: str):  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def main(output: str) -> None:
    cases = load("cases")
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.get_config().set("parallelism.default", "1")
    for statement in cases.tables():
        environment.execute_sql(statement)
    found: dict[str, dict] = {}
    tables = {}
    for name, query in cases.queries().items():
        try:
            tables[name] = environment.sql_query(query)
            columns = tables[name]._j_table.getResolvedSchema().getColumns()
            types = [column.getDataType().getLogicalType().asSerializableString() for column in columns]
            names = [str(column.getName()) for column in columns]
            found[name] = {"name": name, "columns": [list(pair) for pair in zip(names, types, strict=True)]}
        except Exception as error:
            found[name] = {"name": name, "error": reason(error)}
            tables.pop(name, None)
    write(output, found)
    names = list(tables)
    for start in range(0, len(names), JOB_SIZE):
        chunk = names[start : start + JOB_SIZE]
        if not run(environment, {name: tables[name] for name in chunk}, found):
            for name in chunk:
                run(environment, {name: tables[name]}, found)
        write(output, found)


def run(environment, tables, found) -> bool:  # type: ignore[no-untyped-def]
    """Run queries in one job, each into a folder of its own: starting a job takes longer than most queries."""
    with tempfile.TemporaryDirectory() as folder:
        statements = environment.create_statement_set()
        try:
            for name, table in tables.items():
                sink = TableDescriptor.for_connector("filesystem").option("path", f"{folder}/{name}").format("json")
                statements.add_insert(sink.build(), table)
            statements.execute().wait()
        except Exception as error:
            if len(tables) == 1:
                found[next(iter(tables))]["error"] = reason(error)
            return False
        for name in tables:
            files = sorted(path for path in Path(folder, name).rglob("*") if path.is_file())
            lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
            found[name]["rows"] = [list(json.loads(line, parse_float=str).values()) for line in lines]
    return True


def reason(error: Exception) -> str:
    """The last cause of an error of the JVM, in one line."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line for line in lines if "Caused by" in line or "Exception:" in line]
    return (causes or lines or [type(error).__name__])[-1][:300]


def write(output: str, found: dict[str, dict]) -> None:
    lines = (json.dumps(case, ensure_ascii=False) + "\n" for case in found.values())
    Path(output).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)
