"""A plan in words: for tests, logs and `get_execution_plan`."""

from __future__ import annotations

import json
from typing import Any

from headwater.graph.plan import InputSpec, JobPlan, OperatorSpec


def to_text(plan: JobPlan) -> str:
    """One line per source and operator, grouped by stage. Uids are left out where they are not readable anyway."""
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
    """The plan as JSON, with the field names of Flink's plan where it has them."""
    nodes: list[dict[str, Any]] = [
        {"id": source.id, "uid": source.uid, "type": f"Source: {source.name}", "pact": "Data Source", "stage": 0,
         "parallelism": source.parallelism}
        for source in plan.sources
    ]  # fmt: skip
    for stage in plan.stages:
        for operator in stage.operators:
            nodes.append(
                {
                    "id": operator.id,
                    "uid": operator.uid,
                    "type": operator.name,
                    "pact": "Data Sink" if operator.sink is not None else "Operator",
                    "stage": operator.stage,
                    "parallelism": operator.parallelism,
                    "slot": operator.needs_slot,
                    "predecessors": [
                        {
                            "id": item.upstream,
                            "ship_strategy": "CHAINED" if item.chained else item.exchange.name,
                            "side_output": item.side_tag,
                        }
                        for item in operator.inputs
                    ],
                }
            )
    return json.dumps({"name": plan.name, "nodes": nodes}, indent=2)
