"""Do headwater and Flink give the same rows? `python -m benchmarks.nexmark.same_rows [q0 ...]` says so for each query.

Each runs the queries over the same files, 500 events per second of event time, and adds up its changelog: what is left
is compared, row by row. Rows that differ are few where ROW_NUMBER meets rows that are equal in order.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.nexmark.inputs import ROOT, csv_files
from benchmarks.nexmark.queries import MEASURED

EVENTS, RATE = 20_000, 500
CONTENDERS = {"headwater": "benchmarks.nexmark.headwater_query", "Flink": "benchmarks.nexmark.flink_query"}


def rows_of(module: str, folder: str, names: list[str]) -> None:
    """Print a line of JSON for each query: its name and its rows, or an error."""
    contender = importlib.import_module(module)
    for name in names:
        found: Any
        try:
            environment = contender.prepared(Path(folder), 2)
            net: Counter[tuple[str, ...]] = Counter()
            for row in environment.execute_sql(contender.text_of(name)).collect():
                comes = row.get_row_kind().name in ("INSERT", "UPDATE_AFTER")
                net[tuple(map(_text, row))] += 1 if comes else -1
            found = [[*row, str(count)] for row, count in net.items() if count]
        except Exception as error:
            found = str(error)
        print(json.dumps([name, found]), flush=True)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=list(MEASURED))
    parser.add_argument("--of", nargs=2, metavar=("MODULE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of:
        rows_of(*options.of, options.queries)
        os._exit(0)
    from benchmarks.harness.environments import FLINK

    FLINK.ensure()
    folder = csv_files(sys.executable, EVENTS, 2, RATE)
    given: dict[str, dict[str, Any]] = {}
    for (who, module), python in zip(CONTENDERS.items(), (sys.executable, str(FLINK.python)), strict=True):
        command = [python, "-m", "benchmarks.nexmark.same_rows", *options.queries, "--of", module, str(folder)]
        lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        given[who] = dict(json.loads(line) for line in lines if line.startswith('["q'))
    for name in options.queries:
        sides = [given[who].get(name, "no answer") for who in CONTENDERS]
        if failed := [f"{who}: {rows}" for who, rows in zip(CONTENDERS, sides, strict=True) if isinstance(rows, str)]:
            print(f"{name}: {failed[0][:300]}")
            continue
        here, there = (Counter(map(tuple, rows)) for rows in sides)
        only = [sum((one - other).values()) for one, other in ((here, there), (there, here))]
        print(f"{name}: {here.total()} rows here, {there.total()} there; only here {only[0]}, only there {only[1]}")


if __name__ == "__main__":
    main()
