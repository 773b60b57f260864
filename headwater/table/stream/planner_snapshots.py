"""Joins FOR SYSTEM_TIME AS OF: with the version of a table at a row's time, or with what another system says now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.plan import nodes
from headwater.table.plan.expressions import Column, ColumnRef, Rex, ref
from headwater.table.plan.nodes import Plan
from headwater.table.stream.connectors.contract import Connector, Field
from headwater.table.stream.connectors.registry import connector_of, context_of
from headwater.table.stream.operators.calc import Compute
from headwater.table.stream.operators.lookup_join import LookupJoinOperator
from headwater.table.stream.operators.temporal_join import TemporalJoinOperator
from headwater.table.stream.physical import PROCTIME, ROWTIME, Physical, State
from headwater.table.stream.planner_joins import Equal, Joining, join_traits, sided, split_condition
from headwater.table.stream.planner_ranks import conjunction, conjuncts
from headwater.table.stream.planner_tables import require_append
from headwater.table.stream.state_ids import digest

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


def snapshot_join(planner: StreamPlanner, plan: nodes.Join, snapshot: nodes.Snapshot) -> Physical:
    kind = "INNER" if plan.kind == "CROSS" else plan.kind
    if kind not in ("INNER", "LEFT"):
        raise SqlError(f"a {kind} JOIN with FOR SYSTEM_TIME AS OF is not there; use JOIN or LEFT JOIN")
    left = planner.build(plan.left)
    period = snapshot.period
    time = left.traits.times.get(period.column.id) if isinstance(period, ColumnRef) else None
    if time is None or not isinstance(period, ColumnRef):
        raise SqlError(
            "FOR SYSTEM_TIME AS OF takes a time attribute of the left side: a column with a WATERMARK, or one AS"
            " PROCTIME()"
        )
    equal, rest = split_condition(
        plan.condition,
        {column.id for column in left.columns},
        {column.id for column in snapshot.input.columns},
    )
    if not equal:
        raise SqlError("a join FOR SYSTEM_TIME AS OF needs an equality of keys in ON")
    if time == PROCTIME:
        found = _lookup(planner, plan, kind, left, snapshot, equal, rest)
        if found is not None:
            return found
    if snapshot.asked:
        raise SqlError(
            "LOOKUP: the table is not looked up: that takes a connector that can be asked by key (jdbc, redis,"
            " filesystem), FOR SYSTEM_TIME AS OF a column AS PROCTIME()"
        )
    return _temporal(planner, plan, kind, left, snapshot.input, equal, rest, period.column if time == ROWTIME else None)


def _temporal(
    planner: StreamPlanner,
    plan: nodes.Join,
    kind: str,
    left: Physical,
    table: Plan,
    equal: Sequence[Equal],
    rest: Sequence[Rex],
    time: Column | None,
) -> Physical:
    require_append(left.traits, "a join FOR SYSTEM_TIME AS OF")
    key = primary_key(table)
    if time is not None:
        table, key = _versions(table, key)
    if not key:
        raise SqlError(
            "the right side of FOR SYSTEM_TIME AS OF has versions by key: it needs a PRIMARY KEY (…) NOT ENFORCED, or"
            " must be a view that keeps the last row of each key by ROW_NUMBER() = 1"
        )
    before, planner.keep_versions = planner.keep_versions, time is not None
    try:
        right = planner.build(table)
    finally:
        planner.keep_versions = before
    joined = {each.right.column.id for each in equal if isinstance(each.right, ColumnRef)}
    if not {column.id for column in key} <= joined:
        names = ", ".join(column.name for column in key)
        raise SqlError(f"the join FOR SYSTEM_TIME AS OF must name the whole key of the right side in ON: {names}")
    by_key = [each for each in equal if isinstance(each.right, ColumnRef) and each.right.column in key]
    more = [each for each in equal if each not in by_key]
    from headwater.table.plan.calls import call

    rest = [*rest, *(call("=", (each.left, each.right)) for each in more)]
    right_time = None
    if time is not None:
        right_time = next((c for c in right.columns if right.traits.times.get(c.id) == ROWTIME), None)
        if right_time is None:
            raise SqlError(
                "the right side of FOR SYSTEM_TIME AS OF an event time needs an event time of its own: WATERMARK"
            )
    joining = Joining(planner, plan, kind, left, right, by_key, rest)
    sides = joining.sides()
    residual = conjunction(rest) if rest else None
    traits = join_traits(sides, residual, timed=True)
    left_ids = {column.id for column in sides.left.columns}
    traits = replace(
        traits,
        append_only=True,
        culprit="",
        keys=sides.left.traits.keys,
        times={id_: found for id_, found in traits.times.items() if id_ in left_ids},
        windows={},
    )
    ttl = planner.ttl_ms
    made = sides.physical(
        "TemporalJoin",
        TemporalJoinOperator,
        residual,
        traits,
        State("the version of each key that holds, and later ones", ttl),
        left_time=time,
        right_time=right_time,
        ttl_ms=ttl,
    )
    return joining.chosen(made)


def primary_key(plan: Plan) -> list[Column]:
    """The columns of the table's primary key, as they leave the plan; [] if it has none, or they do not."""
    match plan:
        case nodes.Scan():
            names = plan.table.schema.primary_key
            found = [column for column in plan.columns if column.name in names]
            return found if len(found) == len(names) else []
        case nodes.Watermark() | nodes.Filter():
            return primary_key(plan.input)
        case nodes.Project():
            origins = {rex.column.id: column for column, rex in plan.items if isinstance(rex, ColumnRef)}
            inner = primary_key(plan.input)
            return [origins[c.id] for c in inner] if inner and all(c.id in origins for c in inner) else []
    return []


def _versions(plan: Plan, key: list[Column]) -> tuple[Plan, list[Column]]:
    """A view that keeps the last row of each key: all its rows are versions."""
    if isinstance(plan, nodes.Project):
        inner, found = _versions(plan.input, [])
        origins = {rex.column.id: column for column, rex in plan.items if isinstance(rex, ColumnRef)}
        there = {column.id for column in inner.columns}
        if found and all(each.id in origins for each in found):
            items = tuple((c, rex) for c, rex in plan.items if not isinstance(rex, ColumnRef) or rex.column.id in there)
            return replace(plan, input=inner, items=items), [origins[each.id] for each in found]
    if isinstance(plan, nodes.Filter) and isinstance(plan.input, nodes.Project):
        # The filter stands above the projection if the rules have not moved it.
        inner_filter = plan.input.input
        if isinstance(inner_filter, nodes.Over):
            names = {c.id: rex for c, rex in plan.input.items}
            moved = plan.condition.transform(lambda n: names.get(n.column.id) if isinstance(n, ColumnRef) else None)
            return _versions(replace(plan.input, input=nodes.Filter(inner_filter, moved)), key)
    if isinstance(plan, nodes.Filter) and isinstance(plan.input, nodes.Over) and len(plan.input.calls) == 1:
        from headwater.table.stream.planner_ranks import Bounds, _tightened

        column, window = plan.input.calls[0]
        parts = conjuncts(plan.condition)
        bounds = _tightened(Bounds(), parts[0], column) if len(parts) == 1 else None
        keys = [each.column for each in window.partition_by if isinstance(each, ColumnRef)]
        if (
            window.call.name == "ROW_NUMBER"
            and bounds == Bounds(1, 1)
            and len(keys) == len(window.partition_by)
            and len(window.order_by) == 1
            and window.order_by[0].descending
        ):
            return plan.input.input, keys
    return plan, key


def _shown(retry: nodes.LookupRetry | None) -> str:
    return "" if retry is None else f", retry=[lookup_miss, FIXED_DELAY, {retry.delay_ms}ms, {retry.attempts}]"


def _lookup(
    planner: StreamPlanner,
    plan: nodes.Join,
    kind: str,
    left: Physical,
    snapshot: nodes.Snapshot,
    equal: Sequence[Equal],
    rest: Sequence[Rex],
) -> Physical | None:
    """A join with what the table's connector says at the moment; None if it cannot be asked."""
    table = snapshot.input
    inner = table.input if isinstance(table, nodes.Watermark) else table
    if not isinstance(inner, nodes.Scan) or inner.table.rows is not None:
        return None
    metadata = {column.name: column.metadata_key for column in inner.table.schema.columns}
    fields = tuple(Field(c.name, c.type, metadata[c.name]) for c in inner.columns)
    context = context_of(inner.identifier, inner.table, fields, planner.zone)
    connector = connector_of(context)
    if type(connector).lookup is Connector.lookup:
        return None
    by_column = [each for each in equal if isinstance(each.right, ColumnRef)]
    if len(by_column) != len(equal):
        raise SqlError("a lookup join takes equalities with columns of the table that is looked up")
    names = [each.right.column.name for each in by_column if isinstance(each.right, ColumnRef)]
    lookup, cache = connector.lookup(context, names)
    context.options.check()
    arranged, keys = planner.columns_of(left, [each.left for each in equal], keep=True)
    by_id = {column.id: column for column in plan.columns}
    right = tuple(by_id.get(c.id, replace(c, type=c.type.with_nullable(True))) for c in inner.columns)
    columns = (*arranged.columns, *right)
    require_append(left.traits, "a lookup join")
    residual = conjunction(rest) if rest else None
    factory = partial(
        LookupJoinOperator,
        arranged.columns,
        lookup,
        kind,
        keys,
        residual,
        columns,
        cache=cache,
        retry=snapshot.retry,
        zone=planner.zone,
    )
    before = arranged.traits
    traits = replace(
        before,
        keys=frozenset(),
        meanings=sided(before.meanings, {c.id: f"{inner.identifier.name}.{c.name}" for c in inner.columns}),
        rows=digest("lookup", before.rows, inner.identifier, names),
    )
    made = Physical(
        "LookupJoin",
        f"table=[{inner.identifier}], joinType=[{kind}], lookup=[{', '.join(names)}]{_shown(snapshot.retry)}",
        columns,
        (arranged,),
        factory,
        traits=traits,
    )
    if [c.id for c in columns] == [c.id for c in plan.columns]:
        return made
    by_id = {column.id: column for column in columns}
    return planner.calc(made, [Compute(tuple((c, ref(by_id[c.id])) for c in plan.columns))])
