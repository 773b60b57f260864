"""Seeded histories of the engine: none may lose, double or reorder a record, or end with another state.

`make chaos` runs many more of them. A seed that fails is run again with `scripts/chaos.py --seed N`.
"""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from tests.chaos.simulator.faults import BESIDE_CHECKPOINT, KINDS, NAMED_STEPS, Fault
from tests.chaos.simulator.jobs import JOBS, Shape
from tests.chaos.simulator.oracles import by_key
from tests.chaos.simulator.run import Result, expected_of, faults_of, reduce_faults, run_seed, shape_of
from tests.chaos.simulator.sabotage import SABOTAGES, Sabotage

SEEDS = 200
BLOCK = 20


@functools.cache
def results(first: int) -> list[Result]:
    return [run_seed(seed) for seed in range(first, first + BLOCK)]


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_whatever_fails_nothing_is_lost_doubled_or_reordered(first: int) -> None:
    failed = [reduce_faults(result).describe() for result in results(first) if result.problems]
    assert not failed, "\n" + "\n".join(failed)


def test_faults_of_every_kind_and_at_every_step_did_fire() -> None:
    planned: list[Fault] = []
    fired: list[Fault] = []
    for first in range(0, SEEDS, BLOCK):
        for result in results(first):
            planned += result.faults
            fired += result.fired
    kinds, sites = Counter(fault.kind for fault in fired), Counter(fault.site for fault in fired)
    assert {kind: kinds[kind] for kind in KINDS if kinds[kind] < 10} == {}
    assert {step: sites[step] for step in NAMED_STEPS if sites[step] < 3} == {}
    # Not every history has a checkpoint that lasts so long.
    late = [fault for fault in planned if fault not in fired and fault.site not in BESIDE_CHECKPOINT]
    assert len(late) < 0.2 * len(planned), "many faults come too late"
    assert any(result.starts > 2 for first in range(0, SEEDS, BLOCK) for result in results(first))


@pytest.mark.parametrize("seed", [4, 8, 49])
def test_one_seed_is_one_history(seed: int) -> None:
    again = run_seed(seed)
    assert again == run_seed(seed)
    assert again.digest != run_seed(seed, again.faults[:0]).digest


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_gives_the_same_whatever_its_shape(job: str) -> None:
    """Otherwise a difference under faults would prove nothing."""
    shapes = [Shape(job, parallelism, interval) for parallelism in (1, 2, 3) for interval in (1, 3)]
    first = expected_of(shapes[0])
    assert first.records and first.state
    for shape in shapes[1:]:
        other = expected_of(shape)
        assert by_key(other.records) == by_key(first.records) and other.state == first.state


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.patch.__name__)
def test_an_oracle_notices(sabotage: Sabotage) -> None:
    for seed in range(100):
        if shape_of(seed).backend != "hashmap":
            continue
        faults = faults_of(seed, sabotage.more)  # drawn from a run of the engine as it is
        with sabotage.patch():
            problems = run_seed(seed, faults).problems
        if any(sabotage.says in problem for problem in problems):
            return
    pytest.fail(f"the engine was broken ({sabotage.patch.__doc__}) and nobody noticed")
