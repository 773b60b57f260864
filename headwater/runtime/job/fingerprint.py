"""What makes two plans the same for the purpose of resuming."""

from __future__ import annotations

import hashlib

import msgspec

from headwater.graph.plan import JobPlan


def stateful_operators(plan: JobPlan) -> dict[str, str]:
    """{uid: name} of the operators whose state snapshots hold."""
    return {operator.uid: operator.name for stage in plan.stages for operator in stage.operators if operator.needs_slot}


def plan_fingerprint(plan: JobPlan) -> str:
    """Changes when a partition of a stateful stage could no longer find its state, or a source its positions."""
    facts = [
        [stage.index, [[operator.uid, operator.parallelism] for operator in stage.operators if operator.needs_slot]]
        for stage in plan.stages
        if stage.needs_slot
    ]
    sources = sorted(source.uid for source in plan.sources)
    return hashlib.sha256(msgspec.msgpack.encode([facts, sources])).hexdigest()[:32]


def parallelisms(plan: JobPlan) -> dict[str, int]:
    """{uid: parallelism} of all operators and sources. The same for two plans of a program: nothing to rescale."""
    operators = {operator.uid: operator.parallelism for stage in plan.stages for operator in stage.operators}
    return operators | {source.uid: source.parallelism for source in plan.sources}
