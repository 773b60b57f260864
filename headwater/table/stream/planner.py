"""From a bound logical plan to a physical one: which operator computes each node, and what is known about its rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.table.functions.frame import Frame
from headwater.table.plan import nodes
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Rex, SubqueryRex, WindowCall, ref
from headwater.table.plan.match import Match
from headwater.table.plan.nodes import Plan
from headwater.table.stream.changes import schema_of
from headwater.table.stream.connectors.values import values_source
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.operators.calc import CalcOperator, Compute, Keep, Step
from headwater.table.stream.physical import PROCTIME, Physical, Traits, is_proctime
from headwater.table.stream.planner_sources import convert, scan_source, watermark
from headwater.table.stream.rules.prune_columns import read_only
from headwater.table.stream.state_ids import digest, meaning


@dataclass
class StreamPlanner:
    """Plans the queries of one job: tables that several of them read are read once."""

    zone: str = "UTC"
    ttl_ms: int | None = None
    idle_timeout_ms: int | None = None
    sources: dict[Any, tuple[Physical, Any]] = field(default_factory=dict)
    uids: dict[str, int] = field(default_factory=dict)
    keep_versions: bool = False
    """Sources are read for their versions: rows that replace each other are not reduced to the last one."""
    once: frozenset[str] = frozenset()
    """Tables that the whole job reads at one place only: filters may go into their sources."""

    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Tables of which the whole job needs only some columns, and which."""

    def plan(self, plan: Plan) -> Physical:
        """The physical plan of a query."""
        from headwater.table.stream.rules import optimised

        return self.build(read_only(optimised(plan), self.columns))

    def build(self, plan: Plan) -> Physical:
        from headwater.table.stream import planner_aggregates as aggregates
        from headwater.table.stream import planner_joins as joins
        from headwater.table.stream import planner_ranks as ranks
        from headwater.table.stream import planner_tables as tables

        match plan:
            case nodes.Project() | nodes.Filter():
                return self._chain(plan)
            case nodes.Scan():
                return self._scan(plan)
            case nodes.Values():
                return self._values(plan)
            case nodes.Watermark():
                return watermark(self, plan)
            case nodes.Aggregate():
                return aggregates.aggregate(self, plan)
            case nodes.WindowTable():
                return tables.window_table(self, plan)
            case nodes.Unnest():
                return tables.unnest(self, plan)
            case nodes.Over():
                return ranks.over(self, plan)
            case nodes.Sort():
                return ranks.sort(self, plan)
            case nodes.SetOperation():
                return tables.set_operation(self, plan)
            case nodes.Join():
                return joins.join(self, plan)
            case Match():
                return tables.match(self, plan)
        raise SqlError(f"{type(plan).__name__} does not run on streams")

    def ttls(self, plan: nodes.Join) -> tuple[int | None, int | None]:
        """How long a join keeps the rows of each side."""
        one, other = plan.ttl_ms or (None, None)
        return (
            self.ttl_ms if one is None else one or None,
            self.ttl_ms if other is None else other or None,
        )

    def uid(self, kind: str, *meaning: object) -> str:
        """The identity of an operator's state."""
        found = f"{kind.lower()}-{digest(kind, *meaning)}"
        twin = self.uids[found] = self.uids.get(found, 0) + 1
        return found if twin == 1 else f"{found}-{twin}"

    # -- Projections and filters

    def _chain(self, plan: Plan) -> Physical:
        from headwater.table.stream import planner_ranks as ranks

        steps: list[Step] = []
        while isinstance(plan, nodes.Project | nodes.Filter):
            if isinstance(plan, nodes.Filter) and isinstance(plan.input, nodes.Over):
                ranked = ranks.rank(self, plan, used=_used(steps))
                if ranked is not None:
                    return self.calc(ranked, steps)
            steps.insert(0, Compute(plan.items) if isinstance(plan, nodes.Project) else Keep(plan.condition))
            plan = plan.input
        if isinstance(plan, nodes.Scan):
            kept = takewhile(lambda step: isinstance(step, Keep), steps)
            filters = tuple(each for step in kept if isinstance(step, Keep) for each in ranks.conjuncts(step.condition))
            return self.calc(scan_source(self, plan, filters), steps)
        return self.calc(self.build(plan), steps)

    def calc(self, input: Physical, steps: Sequence[Step]) -> Physical:
        """The input with some projections and filters, joined to those that it has already."""
        if not steps:
            return input
        traits = input.traits
        for step in steps:
            _check_step(step, traits)
            traits = _after(step, traits)
        last = next((step for step in reversed(steps) if isinstance(step, Compute)), None)
        columns = input.columns if last is None else last.columns
        if input.kind == "Calc":
            base, steps = input.inputs[0], (*input.logical, *steps)
        else:
            base = input
        steps = tuple(step for step in steps if not _is_nothing(step, base, steps))
        if not steps:
            return replace(base, traits=traits)
        factory = partial(CalcOperator, base.columns, steps, columns, self.zone)
        return Physical("Calc", _describe(steps), columns, (base,), factory, traits=traits, logical=steps)

    def columns_of(self, input: Physical, rexes: Sequence[Rex], keep: bool = False) -> tuple[Physical, list[Column]]:
        """The input projected so that each expression is a column; these columns. `keep`: with all the input's, too.

        Columns that were made for this are named by their meaning: what operators keep under such a name is found
        again.
        """
        meanings = input.traits.meanings
        items: dict[str, tuple[Column, Rex]] = {}
        if keep:
            items = {f"#{column.id}": (column, ref(column)) for column in input.columns}
        found = []
        for rex in rexes:
            key = f"#{rex.column.id}" if isinstance(rex, ColumnRef) and keep else meaning(rex, meanings)
            if key not in items:
                if isinstance(rex, ColumnRef):
                    items[key] = (rex.column, rex)
                else:
                    items[key] = (new_column(f"${digest(key)}", rex.type), rex)
            found.append(items[key][0])
        chosen = tuple(items.values())
        if [column.id for column, _ in chosen] == [column.id for column in input.columns]:
            return input, found
        return self.calc(input, [Compute(chosen)]), found

    # -- Leaves

    def _scan(self, plan: nodes.Scan) -> Physical:
        return scan_source(self, plan)

    def _values(self, plan: nodes.Values) -> Physical:
        now = int(time.time() * 1000)
        one = pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
        frame = Frame(1, self.zone, now)
        schema = schema_of(plan.columns)
        rows = [[evaluated(compiled(rex, ()), one, frame)[0].as_py() for rex in row] for row in plan.rows]
        if plan.columns:
            arrays = [pa.array([row[at] for row in rows], each.type) for at, each in enumerate(schema)]
            table = pa.Table.from_arrays(arrays, schema=schema)
        else:
            table = pa.Table.from_batches([one] * len(rows), one.schema)
        name = f"Values({len(rows)})"
        traits = Traits(
            rows=digest("values", [[meaning(rex, {}) for rex in row] for row in plan.rows]),
            meanings={column.id: f"values.{place}" for place, column in enumerate(plan.columns)},
        )
        return convert(self, values_source(table, schema), plan.columns, name, "Values", traits)


def _used(steps: Sequence[Step]) -> set[int] | None:
    """The columns that some steps read; None if all may be read: nothing projects them away."""
    if not any(isinstance(step, Compute) for step in steps):
        return None
    found: set[int] = set()
    for step in steps:
        rexes = [step.condition] if isinstance(step, Keep) else [rex for _, rex in step.items]
        found |= {each.column.id for rex in rexes for each in rex.walk() if isinstance(each, ColumnRef)}
        if isinstance(step, Compute):
            break
    return found


def _is_nothing(step: Step, base: Physical, steps: Sequence[Step]) -> bool:
    """A projection that changes no column."""
    if not isinstance(step, Compute) or step is not steps[0]:
        return False
    return [column.id for column in step.columns] == [column.id for column in base.columns] and all(
        isinstance(rex, ColumnRef) and rex.column.id == column.id for column, rex in step.items
    )


def _check_step(step: Step, traits: Traits) -> None:
    rexes = [step.condition] if isinstance(step, Keep) else [rex for _, rex in step.items]
    for rex in rexes:
        for node in rex.walk():
            if isinstance(node, SubqueryRex):
                raise SqlError("a subquery at this place does not run on streams; write it as a join")
            if isinstance(node, WindowCall):
                raise SqlError("OVER at this place does not run on streams")
            if isinstance(node, FunctionCall) and not node.binding.function.deterministic and not traits.append_only:
                raise SqlError(
                    f"{node.name} gives another value each time, and {traits.culprit} updates its rows: a row that is"
                    f" taken back would not be the one that was there. Compute {node.name} before the updates, or"
                    " leave it out"
                )


def _after(step: Step, traits: Traits) -> Traits:
    if isinstance(step, Keep):
        return replace(traits, rows=digest("filter", traits.rows, meaning(step.condition, traits.meanings)))
    origins = {column.id: rex.column.id for column, rex in step.items if isinstance(rex, ColumnRef)}
    meanings = {column.id: meaning(rex, traits.meanings) for column, rex in step.items}
    meanings = {id_: text if len(text) < 40 else digest(text) for id_, text in meanings.items()}
    found = traits.projected(origins, meanings)
    made = {column.id: PROCTIME for column, rex in step.items if is_proctime(rex)}
    return replace(found, times={**found.times, **made}) if made else found


def _describe(steps: Sequence[Step]) -> str:
    from headwater.table.plan.explain import text

    parts = []
    for step in steps:
        if isinstance(step, Keep):
            parts.append(f"where=[{text(step.condition)}]")
        else:
            items = [
                written if (written := text(rex)) == column.name else f"{written} AS {column.name}"
                for column, rex in step.items
            ]
            parts.append(f"select=[{', '.join(items)}]")
    return ", ".join(parts)
