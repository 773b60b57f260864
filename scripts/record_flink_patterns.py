"""Record what Flink's own CEP matcher finds, for tests/unit/operators/cep/test_flink_parity.py. Needs a JDK (17).

    PYTHONPATH=. python scripts/record_flink_patterns.py [--cases 1500]

Patterns and streams are those that hypothesis makes for the comparison with brute force.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.harness.environments import FLINK
from headwater.operators.cep.steps import PatternSteps
from tests.unit.operators.cep.flink_cases import FILE, case_of
from tests.unit.operators.cep.generated import patterns, streams
from tests.unit.operators.cep.oracle import Event

DRIVER = Path(__file__).with_name("FlinkMatcher.java")


def record(cases: int, jars: Path) -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}

    @seed(15)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(patterns(), streams())
    def make(pattern: PatternSteps, events: list[Event]) -> None:
        case = case_of(pattern, events)
        made.setdefault(json.dumps(case), case)

    make()
    class_path = ":".join(map(str, sorted(jars.glob("*.jar"))))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-nowarn", "-cp", class_path, "-d", folder, str(DRIVER)], check=True)
        done = subprocess.run(
            ["java", "-cp", f"{class_path}:{folder}", "FlinkMatcher"],
            input="\n".join(made),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    return [
        {**case, "flink": json.loads(line)} for case, line in zip(made.values(), done.stdout.splitlines(), strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--jars", type=Path, help="the folder with Flink's jars; without it, PyFlink's are installed")
    options = parser.parse_args()
    jars = options.jars
    if jars is None:
        FLINK.ensure()
        jars = next(FLINK.python.parents[1].glob("lib/python3*/site-packages/pyflink/lib"))
    recorded = record(options.cases, jars)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in recorded)
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(recorded)} cases in {FILE.name}")


if __name__ == "__main__":
    main()
