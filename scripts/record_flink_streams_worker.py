"""Runs the queries of `tests/parity/streams` on PyFlink as streams, and writes what their changelogs leave.

Runs with the Python of an environment that has PyFlink: it imports nothing of headwater but one file by path.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.table import EnvironmentSettings, TableEnvironment

CASES = Path(__file__).resolve().parent.parent / "tests" / "parity" / "streams" / "cases.py"


def main() -> None:
    spec = importlib.util.spec_from_file_location("cases", CASES)
    cases = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(cases)  # type: ignore[union-attr]
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.get_config().set("parallelism.default", "1")
    environment.execute_sql(cases.TABLE)
    lines = []
    for query in cases.queries():
        try:
            with environment.execute_sql(query).collect() as changes:
                lines.append(json.dumps({"query": query, "rows": cases.table_of(changes)}) + "\n")
        except Exception as error:
            print(f"Flink refuses {query}: {str(error).splitlines()[-1]}")
    cases.RECORDED.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
    os._exit(0)
