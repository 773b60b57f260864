"""`make parity-functions`: record what Flink's functions give, for the tests of headwater's.

Runs every call of `tests/sql_functions/cases.py` over the samples in Flink (of `.bench/flink`, or of the Python given
with --python), in batch mode, and stores types and values in `tests/sql_functions/recorded.json`:

    {"UPPER(s)": {"type": "STRING", "values": [...]}, "bad call": {"refused": "..."}, "failing call": {"failed": "..."}}

What Flink makes of each pair of types goes to `tests/sql_functions/recorded_types.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.harness.environments import FLINK  # noqa: E402
from tests.sql_functions import samples, type_pairs  # noqa: E402
from tests.sql_functions.aggregate_cases import AGGREGATES, QUERY  # noqa: E402
from tests.sql_functions.cases import CASES  # noqa: E402

RECORDED = ROOT / "tests" / "sql_functions" / "recorded.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="a Python that has PyFlink, instead of .bench/flink")
    parser.add_argument("--missing", action="store_true", help="record only calls that have no recording yet")
    chosen = parser.parse_args()
    if chosen.python is None:
        FLINK.ensure()
    known = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    calls = list(dict.fromkeys(each.sql for each in (*CASES, *AGGREGATES)))
    aggregates = {each.sql for each in AGGREGATES}
    wanted = [sql for sql in calls if not (chosen.missing and sql in known)]
    found = record(chosen.python or FLINK.python, wanted, aggregates, with_types=not chosen.missing)
    merged = {sql: found.get(sql) or known[sql] for sql in calls}
    lines = (f"{json.dumps(sql, ensure_ascii=False)}: {json.dumps(merged[sql], ensure_ascii=False)}" for sql in calls)
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{RECORDED.relative_to(ROOT)}: {len(wanted)} calls recorded, {len(calls)} in all")
    return 0


def record(python: Path, calls: list[str], aggregates: set[str], with_types: bool) -> dict[str, dict[str, object]]:
    """Let PyFlink compute the calls in one process. Write the types of pairs if they are wanted."""
    queries = type_pairs.queries() if with_types else {}
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        rows = [
            [samples.literal(values[at], samples.type_of(name)) for name, (_, values) in samples.COLUMNS.items()]
            for at in range(samples.ROWS)
        ]
        request.write_text(
            json.dumps(
                {
                    "zone": samples.ZONE,
                    "columns": list(samples.COLUMNS),
                    "rows": rows,
                    "calls": [each for each in calls if each not in aggregates],
                    "aggregates": [each for each in calls if each in aggregates],
                    "aggregate_query": QUERY,
                    "type_queries": list(queries),
                }
            ),
            "utf-8",
        )
        worker = ROOT / "scripts" / "flink_functions_worker.py"
        subprocess.run([python, worker, request, answer], check=True)
        found = json.loads(answer.read_text("utf-8"))
    if with_types:
        type_pairs.write({queries[query]: kind for query, kind in found["types"].items()})
    calls_found: dict[str, dict[str, object]] = found["calls"]
    return calls_found


if __name__ == "__main__":
    sys.exit(main())
