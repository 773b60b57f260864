"""The command: `python -m benchmarks [--only NAME] [--quick] [--no-peers]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import suite
from benchmarks.harness import machine, report
from benchmarks.harness.environments import BENCH_DIR, BYTEWAX, FLINK
from benchmarks.harness.runner import run_case

BUSY_LOAD = 0.5
"""Running processes over the last minute, above which numbers should not be trusted."""


def main() -> None:
    cores = machine.cores()
    cases = suite.cases()
    names = [case.name for case in cases]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure headwater against its peers.")
    parser.add_argument("--only", metavar="NAME", action="append", help=f"one case of: {', '.join(names)} (repeatable)")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that all works; the numbers mean nothing"
    )
    parser.add_argument("--no-peers", action="store_true", help="run headwater and the bare loop only")
    parser.add_argument("--output", type=Path, help="folder for RESULTS.md and results.json")
    options = parser.parse_args()
    for name in options.only or []:
        if not any(case.startswith(name) for case in names):
            parser.error(f"no case is called {name!r}; there are: {', '.join(names)}")
    only = [name for given in options.only or names for name in _called(given, names)]
    chosen = [case for case in cases if case.name in only]

    facts = machine.describe(() if options.no_peers else (FLINK, BYTEWAX))
    if machine.load() > BUSY_LOAD:
        print(f"the machine is busy (load {machine.load():.1f}): expect low and noisy numbers", flush=True)
    results = {}
    # Only a whole run may replace the report that is kept with the sources.
    whole = not (options.only or options.quick or options.no_peers)
    folder = options.output or (Path(__file__).parent if whole else BENCH_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        results[case.name] = run_case(case, quick=options.quick, with_peers=not options.no_peers)
        report.write(folder, facts, cases, suite.targets(cores), results, quick=options.quick)
    print(f"\nwritten to {folder / 'RESULTS.md'}")
    for verdict in report.judge(suite.targets(cores), results, quick=options.quick):
        print(f"  {verdict['verdict']:<13} {verdict['target']}: {verdict['measured']} (promised {verdict['promised']})")


def _called(given: str, names: list[str]) -> list[str]:
    """The case of that name, or those whose names begin so."""
    return [given] if given in names else [name for name in names if name.startswith(given)]


if __name__ == "__main__":
    main()
