"""Runs queries with MATCH_RECOGNIZE on PyFlink, and writes their rows as JSON lines. Called by record_flink_matches.py.

Runs with the Python of an environment that has PyFlink: it imports nothing of headwater but two files by path.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.table import EnvironmentSettings, TableEnvironment

JOB_SIZE = 12
HERE = Path(__file__).resolve().parent


def load(path: Path):  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def main(output: str) -> None:
    cases = load(HERE.parent / "tests" / "parity" / "matches" / "cases.py")
    batch = load(HERE / "sql_record_worker.py")
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        "table.local-time-zone": "UTC",
        "parallelism.default": "1",
        "execution.checkpointing.interval": "100 ms",
        "restart-strategy.type": "none",
        # Queries that differ in WITHIN only would share one operator, and the result of one of them.
        "table.optimizer.reuse-sub-plan-enabled": "false",
    }.items():
        environment.get_config().set(key, value)
    folder = tempfile.mkdtemp()
    Path(folder, "ticks.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in cases.rows()))
    environment.execute_sql(
        "CREATE TABLE ticks (symbol STRING, ts TIMESTAMP(3), price INT, tax INT, WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}/ticks.csv', 'format' = 'csv')"
    )
    found: dict[str, dict] = {}
    tables = {}
    for name, query in cases.queries().items():
        found[name] = {"name": name}
        try:
            tables[name] = environment.sql_query(query)
            tables[name].explain()
        except Exception as error:
            found[name]["error"] = batch.reason(error)
            tables.pop(name, None)
    batch.write(output, found)
    names = list(tables)
    for start in range(0, len(names), JOB_SIZE):
        chunk = names[start : start + JOB_SIZE]
        if not batch.run(environment, {name: tables[name] for name in chunk}, found):
            for name in chunk:
                batch.run(environment, {name: tables[name]}, found)
        batch.write(output, found)


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)
