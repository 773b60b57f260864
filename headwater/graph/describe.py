"""A plan to read: as text, for tests, and as JSON, for `get_execution_plan`."""

from __future__ import annotations

import json
from typing import Any

from headwater.graph.plan import Exchange, InputSpec, JobPlan, OperatorSpec
from headwater.operators.type_check import TypeCheckOperator


def to_text(plan: JobPlan) -> str:
    """Return one line per source and operator, grouped by stage. Leaves out generated uids, which nobody can read."""
    lines = []
    for stage in plan.stages:
        lines.append(f"stage {stage.index} x{stage.parallelism}{' slots' if stage.needs_slot else ''}")
        if stage.index == 0:
            lines += [f"  {source.id} {source.name} x{source.parallelism}" for source in plan.sources]
        lines += [f"  {_operator_text(operator)}" for operator in stage.operators]
    return "\n".join(lines)


def _operator_text(operator: OperatorSpec) -> str:
    inputs = ", ".join(_input_text(item) for item in operator.inputs)
    return f"{operator.id} {operator.name} x{operator.parallelism}{' slot' if operator.needs_slot else ''} <- {inputs}"


def _input_text(item: InputSpec) -> str:
    upstream = f"{item.upstream}[{item.side_tag}]" if item.side_tag is not None else str(item.upstream)
    return f"{upstream} {'chained' if item.chained else item.exchange.value}"


def to_json(plan: JobPlan) -> str:
    """The plan in the JSON of Flink's `getExecutionPlan()`, which Flink's plan visualiser draws.

    One node per operator that the program has: the checks of declared types, which headwater puts between them, are
    left out. Numbers start at 1, as Flink's do.
    """
    operators = [operator for stage in plan.stages for operator in stage.operators]
    checked = {operator.id: operator.inputs[0].upstream for operator in operators if is_type_check(operator)}
    nodes = [_node(source.id, f"Source: {source.name}", "Data Source", source.parallelism) for source in plan.sources]
    for operator in sorted(operators, key=lambda each: (each.sink is not None, each.id)):
        if operator.id in checked:
            continue
        is_sink = operator.sink is not None
        name, pact = (f"Sink: {operator.name}", "Data Sink") if is_sink else (operator.name, "Operator")
        predecessors = [
            {
                "id": checked.get(item.upstream, item.upstream) + 1,
                "ship_strategy": Exchange.FORWARD.name if item.chained else item.exchange.name,
                "side": "second",  # always so in Flink
            }
            for item in operator.inputs
        ]
        nodes.append({**_node(operator.id, name, pact, operator.parallelism), "predecessors": predecessors})
    return json.dumps({"nodes": nodes}, indent=2)


def _node(node_id: int, name: str, pact: str, parallelism: int) -> dict[str, Any]:
    return {"id": node_id + 1, "type": name, "pact": pact, "contents": name, "parallelism": parallelism}


def is_type_check(operator: OperatorSpec) -> bool:
    """Return True if headwater put the operator in, to check a declared type: people do not see it in their job."""
    return getattr(operator.factory, "func", None) is TypeCheckOperator
