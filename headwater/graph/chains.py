"""Which operators are one chain: a vertex of Flink's job graph."""

from __future__ import annotations

from headwater.graph.plan import JobPlan, OperatorSpec


def is_chained(operator: OperatorSpec) -> bool:
    """Return True if the operator belongs to the vertex of the one before it. Flink's rule: one input, no exchange."""
    return len(operator.inputs) == 1 and operator.inputs[0].chained


def chain_heads(plan: JobPlan) -> dict[int, int]:
    """Return {source or operator: the head of its vertex}, in topological order."""
    heads = {source.id: source.id for source in plan.sources}
    for stage in plan.stages:
        for operator in stage.operators:
            heads[operator.id] = heads[operator.inputs[0].upstream] if is_chained(operator) else operator.id
    return heads
