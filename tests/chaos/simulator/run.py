"""One seed: what it chooses, what happened, and whether all oracles held."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.chaos.simulator.faults import TOGETHER, Fault, draw_faults
from tests.chaos.simulator.jobs import JOBS, Shape
from tests.chaos.simulator.oracles import Expected
from tests.chaos.simulator.world import World

ROCKSDB_EVERY = 50
"""Every so many seeds keep their state in RocksDB, which costs more time."""


@dataclass(frozen=True)
class Result:
    """What became of a seed."""

    seed: int
    shape: Shape
    faults: tuple[Fault, ...]
    fired: tuple[Fault, ...]
    problems: tuple[str, ...]
    starts: int
    steps: int
    digest: int
    """Of the whole history: the same seed on the same engine has the same one."""

    def describe(self) -> str:
        """For whoever has to find out why."""
        planned = "".join(f"\n    {fault}{'' if fault in self.fired else ' (did not fire)'}" for fault in self.faults)
        found = "".join(f"\n    {problem}" for problem in self.problems) or " none"
        return (
            f"seed {self.seed}: {self.shape}, {self.starts} starts, {self.steps} steps\n  faults:{planned}\n"
            f"  problems:{found}\n  again: .venv/bin/python scripts/chaos.py --seed {self.seed}"
        )


def shape_of(seed: int) -> Shape:
    """The job that a seed runs."""
    drawn = random.Random(f"shape-{seed}")
    backend = "rocksdb" if seed % ROCKSDB_EVERY == ROCKSDB_EVERY - 1 else "hashmap"
    return Shape(drawn.choice(sorted(JOBS)), drawn.randint(1, 3), drawn.choice((1, 1, 2, 3, 5)), backend)


@functools.cache
def expected_of(shape: Shape, *, grown: bool = False) -> Expected:
    """The run in which nothing goes wrong. `grown`: with all sources from the beginning."""
    world = World(0, shape, [], grown=grown)
    world.run()
    if world.oracles.problems or world.oracles.state is None:
        raise AssertionError(f"{shape} fails without faults: {world.oracles.problems}")
    return Expected(world.outside.records(), world.oracles.state, world.faults.visits)


def faults_of(seed: int, more: Sequence[str] = ()) -> list[Fault]:
    """What a seed lets go wrong, and one fault of each kind in `more`."""
    return draw_faults(seed, expected_of(shape_of(seed), grown=False).visits, (*TOGETHER.get(seed % 10, ()), *more))


def run_seed(seed: int, faults: Sequence[Fault] | None = None, trace: Callable[[str], None] | None = None) -> Result:
    """Run one history. With `faults` these happen instead of those that the seed draws."""
    shape = shape_of(seed)
    planned = list(faults_of(seed) if faults is None else faults)
    world = World(seed, shape, planned)
    world.trace = trace
    world.run()
    world.oracles.compare(expected_of(shape, grown=world.grown))
    return Result(
        seed,
        shape,
        tuple(planned),
        tuple(world.faults.fired),
        tuple(world.oracles.problems),
        len(world.drivers),
        world.scheduler.steps,
        world.digest,
    )


def reduce_faults(result: Result) -> Result:
    """Leave out faults as long as the seed still fails: what is left is what it takes."""
    smallest = result
    for fault in result.faults:
        fewer = [each for each in smallest.faults if each is not fault]
        if fewer and (tried := run_seed(result.seed, fewer)).problems:
            smallest = tried
    return smallest
