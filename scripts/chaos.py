"""Runs many seeded histories of the engine under faults, and says what that proves.

    make chaos                                              3,000 seeds
    .venv/bin/python scripts/chaos.py --seeds 100000 --first 1000000
    .venv/bin/python scripts/chaos.py --seed 1234           one seed, with its faults
    .venv/bin/python scripts/chaos.py --seed 1234 --faults 0,2 --trace

docs/chaos.md tells what is simulated and what is compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.chaos.simulator.faults import Fault
from tests.chaos.simulator.run import Result, faults_of, reduce_faults, run_seed

SEEDS = 3_000
BLOCK = 25
"""Seeds that a process takes at a time."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many (default {SEEDS:,})")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--seed", type=int, help="run only this one, and tell about it")
    parser.add_argument("--faults", help="with --seed: only these of its faults, by number, e.g. 0,2")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every step")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return run_one(options.seed, options.faults, trace=options.trace)
    return run_many(options.first, options.seeds, options.processes)


def run_one(seed: int, chosen: str | None, *, trace: bool) -> int:
    faults = faults_of(seed)
    if chosen is not None:
        faults = [faults[int(number)] for number in chosen.split(",") if number]
    result = run_seed(seed, faults, print if trace else None)
    print(result.describe())
    if not result.problems:
        print("  all oracles hold")
        return 0
    print("the least it takes:")
    print(reduce_faults(result).describe())
    return 1


def run_block(first: int, count: int) -> list[Result]:
    return [run_seed(seed) for seed in range(first, first + count)]


def run_many(first: int, seeds: int, processes: int) -> int:
    started = time.monotonic()
    done, failed, starts = 0, 0, 0
    planned: list[Fault] = []
    fired: list[Fault] = []
    for result in all_results(first, seeds, processes):
        done += 1
        starts += result.starts
        planned += result.faults
        fired += result.fired
        if result.problems:
            failed += 1
            print(f"\n{reduce_faults(result).describe()}")
        seconds = time.monotonic() - started
        left = seconds / done * (seeds - done)
        show(
            f"{done:,} of {seeds:,} seeds, {len(fired):,} faults fired, {failed} failed, {left:.0f} s left",
            done == seeds,
        )
    print(f"{done:,} histories (seeds {first} to {first + seeds - 1}), {starts:,} starts of a driver, {seconds:.0f} s")
    print(table("faults fired, by kind", Counter(fault.kind for fault in fired), Counter(f.kind for f in planned)))
    print(table("by step", Counter(fault.site for fault in fired), Counter(fault.site for fault in planned)))
    print(verdict(done, failed))
    return 1 if failed else 0


def all_results(first: int, seeds: int, processes: int) -> Iterator[Result]:
    blocks = [(start, min(BLOCK, first + seeds - start)) for start in range(first, first + seeds, BLOCK)]
    if processes == 1:
        for block in blocks:
            yield from run_block(*block)
        return
    with ProcessPoolExecutor(processes) as pool:
        for future in as_completed([pool.submit(run_block, *block) for block in blocks]):
            yield from future.result()


def show(line: str, last: bool) -> None:
    """A line that is written over by the next one; in a log, now and then."""
    if sys.stdout.isatty():
        print(f"\r{line:<100}", end="\n" if last else "", flush=True)
    elif last or int(line.split(" ")[0].replace(",", "")) % 500 == 0:
        print(line, flush=True)


def table(title: str, fired: Counter[str], planned: Counter[str]) -> str:
    rows = [f"  {name:<24}{count:>8,}  of {planned[name]:,} planned" for name, count in fired.most_common()]
    return "\n".join([f"{title}: {sum(fired.values()):,}", *rows])


def verdict(done: int, failed: int) -> str:
    if failed:
        return f"{failed} of {done:,} histories FAILED: run each again with --seed"
    return (
        f"no history lost, doubled or reordered a record, or ended with another state. Of histories such as these "
        f"fewer than 3/{done:,} = {3 / done:.2%} do, with 95 % confidence (rule of three)"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
