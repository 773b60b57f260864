"""Compares plans: whether a job can resume with another one, and whether there is anything to rescale."""

from __future__ import annotations

import hashlib

import msgspec

from headwater.graph.plan import JobPlan


def stateful_operators(plan: JobPlan) -> dict[str, str]:
    """Return {uid: name} of the operators whose state is in snapshots."""
    return {operator.uid: operator.name for stage in plan.stages for operator in stage.operators if operator.needs_slot}


def plan_fingerprint(plan: JobPlan) -> str:
    """Return a hash that changes if a partition could not find its state by its place, or a source its positions."""
    facts = [
        [stage.index, [[operator.uid, operator.parallelism] for operator in stage.operators if operator.needs_slot]]
        for stage in plan.stages
        if stage.needs_slot
    ]
    sources = sorted(source.uid for source in plan.sources)
    return hashlib.sha256(msgspec.msgpack.encode([facts, sources])).hexdigest()[:32]


def parallelisms(plan: JobPlan) -> dict[str, int]:
    """Return {uid: parallelism} of all operators and sources. Equal for two plans: there is nothing to rescale."""
    operators = {operator.uid: operator.parallelism for stage in plan.stages for operator in stage.operators}
    return operators | {source.uid: source.parallelism for source in plan.sources}
