"""Record what Flink gives for the MATCH_RECOGNIZE queries of `tests/parity/matches`, on streams, for the test of ours.

Makes `.bench/flink`, or takes the Python given with --python. Takes minutes: every twelve queries are a job of Flink.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.harness.environments import FLINK  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="a Python that has PyFlink, instead of .bench/flink")
    chosen = parser.parse_args()
    if chosen.python is None:
        FLINK.ensure()
    output = ROOT / "tests" / "parity" / "matches" / "recorded.jsonl"
    worker = Path(__file__).with_name("record_flink_matches_worker.py")
    return subprocess.run([chosen.python or FLINK.python, worker, output], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
