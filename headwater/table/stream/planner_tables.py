"""Windowing table functions, UNNEST, patterns, and set operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.plan import nodes
from headwater.table.plan.expressions import Column, ColumnRef, ref
from headwater.table.plan.match import Match, MatchValue
from headwater.table.stream.operators.match import MatchOperator
from headwater.table.stream.operators.unnest import UnnestOperator
from headwater.table.stream.physical import PROCTIME, ROWTIME, Physical, State, Traits, WindowPart, is_proctime
from headwater.table.stream.state_ids import digest, keys_meaning, meaning
from headwater.table.types.logical import LocalZonedTimestampType

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


def window_table(planner: StreamPlanner, plan: nodes.WindowTable) -> Physical:
    """TUMBLE, HOP, CUMULATE: stateless. SESSION: keyed, rows wait until their session is over."""
    input = planner.build(plan.input)
    before = input.traits
    time = before.times.get(plan.time.id)
    if time is None:
        raise SqlError(
            f"{plan.kind} needs a time attribute: '{plan.time.name}' is a plain {plan.time.type.sql()} here. Declare"
            f" WATERMARK FOR {plan.time.name} AS … in CREATE TABLE, or use a column AS PROCTIME(); an aggregate or a"
            " join in between makes it a plain column"
        )
    lengths = f"size=[{plan.size_ms} ms]" + (f", step=[{plan.step_ms} ms]" if plan.step_ms else "")
    identity = digest(plan.kind, plan.size_ms, plan.step_ms, plan.offset_ms)
    zoned = isinstance(plan.time.type, LocalZonedTimestampType)
    parts = {
        column.id: WindowPart(part, identity, time, zoned)
        for part, column in zip(("start", "end", "time"), plan.added, strict=True)
    }
    of = before.meanings.get(plan.time.id)
    made = {column.id: digest("window", identity, of, part) for part, column in enumerate(plan.added)}
    traits = replace(
        before,
        keys=frozenset(),
        times={**before.times, plan.added[2].id: time},
        windows={**before.windows, **parts},
        meanings={**before.meanings, **made},
        rows=digest("window", before.rows, identity, of),
    )
    cut = replace(plan, input=nodes.Values((), input.columns))
    detail = f"{plan.kind}(time=[{plan.time.name}], {lengths})"
    if plan.kind != "SESSION":
        from headwater.table.stream.operators.windows import assign_windows

        assign = partial(assign_windows, input.columns, cut, zone=planner.zone)
        return Physical("WindowTableFunction", detail, plan.columns, (input,), assign, traits=traits)
    from headwater.table.stream.operators.session import SessionAssignOperator

    keys = tuple(input.place(column) for column in plan.partition_by)
    factory = partial(
        SessionAssignOperator, input.columns, cut, plan.columns, event_time=time == ROWTIME, zone=planner.zone
    )
    return Physical(
        "SessionWindow",
        detail,
        plan.columns,
        (input,),
        factory,
        (keys,),
        traits,
        State("rows of each session until it closes", bounded=True),
        planner.uid("SessionWindow", traits.rows, *_all(input), *(before.meanings[c.id] for c in plan.partition_by)),
        ticks=time == PROCTIME,
    )


def _all(input: Physical) -> list[str]:
    """The meanings of all columns: what an operator that keeps whole rows depends on."""
    return [input.traits.meanings.get(column.id, "?") for column in input.columns]


def require_append(traits: Traits, what: str) -> None:
    if not traits.append_only:
        raise SqlError(
            f"{what} cannot take rows that are updated or deleted, and {traits.culprit} does that. Compute the windows"
            " before the updates, or window the updating result in a query of its own over a sink's table"
        )


def unnest(planner: StreamPlanner, plan: nodes.Unnest) -> Physical:
    from headwater.table.plan.explain import text

    input = planner.build(plan.input)
    before = input.traits
    what = meaning(plan.collection, before.meanings)
    made = {column.id: digest("unnest", before.rows, what, place) for place, column in enumerate(plan.added)}
    traits = replace(
        before,
        keys=frozenset(),
        meanings={**before.meanings, **made},
        rows=digest("unnest", before.rows, what, plan.outer),
    )
    cut = replace(plan, input=nodes.Values((), input.columns))
    factory = partial(UnnestOperator, input.columns, cut, plan.columns, zone=planner.zone)
    detail = f"unnest=[{text(plan.collection)}], outer=[{str(plan.outer).lower()}]"
    return Physical("Correlate", detail, plan.columns, (input,), factory, traits=traits)


def match(planner: StreamPlanner, plan: Match) -> Physical:
    """MATCH_RECOGNIZE."""
    input = planner.build(plan.input)
    before = input.traits
    require_append(before, "MATCH_RECOGNIZE")
    order = plan.order_by[0].expression
    assert isinstance(order, ColumnRef)
    time = before.times.get(order.column.id)
    if time is None:
        raise SqlError(
            f"MATCH_RECOGNIZE orders by a time attribute first: '{order.column.name}' is none here. Declare"
            f" WATERMARK FOR {order.column.name} AS … in CREATE TABLE, or use a column AS PROCTIME()"
        )
    defined = [
        (each.variable, meaning(each.condition, _of_match(each.values, before.meanings))) for each in plan.definitions
    ]
    rows = digest("match", before.rows, keys_meaning(plan.order_by, before.meanings), repr(plan.pattern), defined)
    told = _of_match(plan.values, before.meanings)
    made = {column.id: before.meanings[column.id] for column in plan.partition_by}
    made |= {column.id: digest("measure", rows, meaning(rex, told)) for column, rex in plan.measures}
    times = {column.id: PROCTIME for column, rex in plan.measures if is_proctime(rex)}
    if plan.rowtime is not None:
        times[plan.rowtime.id] = time
    traits = Traits(rows=rows, meanings=made, bounded=before.bounded, times=times)
    cut = replace(plan, input=nodes.Values((), input.columns))
    factory = partial(MatchOperator, input.columns, cut, event_time=time == ROWTIME, zone=planner.zone)
    return Physical(
        "Match",
        f"partitionBy=[{', '.join(column.name for column in plan.partition_by)}]",
        plan.columns,
        (input,),
        factory,
        (tuple(input.place(column) for column in plan.partition_by),),
        traits,
        State("rows of matches under way"),
        planner.uid("Match", rows, *_all(input)),
        ticks=time == PROCTIME,
    )


def _of_match(values: Sequence[MatchValue], meanings: Mapping[int, str]) -> dict[int, str]:
    """What the values that are taken from rows of a match mean."""
    return {
        value.column.id: digest(
            value.variable,
            value.which,
            value.offset,
            None if value.source is None else meanings[value.source.id],
            None if value.call is None else meaning(value.call, meanings),
        )
        for value in values
    }


def union(planner: StreamPlanner, inputs: Sequence[Physical], columns: tuple[Column, ...]) -> Physical:
    """All rows of all inputs: columns by place."""
    updating = next((each for each in inputs if not each.traits.append_only), None)
    times: dict[int, str] = {}
    for place, column in enumerate(columns):
        found = {each.traits.times.get(each.columns[place].id, "") for each in inputs}
        if len(found) == 1 and "" not in found:
            times[column.id] = found.pop()
    meanings = {
        column.id: digest("union", *(each.traits.meanings.get(each.columns[place].id) for each in inputs))
        for place, column in enumerate(columns)
    }
    traits = Traits(
        append_only=updating is None,
        culprit="" if updating is None else updating.traits.culprit,
        times=times,
        meanings=meanings,
        rows=digest("union", *(each.traits.rows for each in inputs)),
        bounded=all(each.traits.bounded for each in inputs),
    )
    return Physical("Union", "all=[true]", columns, tuple(inputs), traits=traits)


def set_operation(planner: StreamPlanner, plan: nodes.SetOperation) -> Physical:
    inputs = [planner.build(plan.left), planner.build(plan.right)]
    if plan.operator == "UNION":
        united = union(planner, inputs, plan.columns)
        if plan.all:
            return united
        from headwater.table.stream.planner_aggregates import group

        return group(planner, united, [(column, ref(column)) for column in plan.columns], [])
    from headwater.table.stream.operators.set_operations import SetOperationOperator

    left, right = (each.traits for each in inputs)
    everything = tuple(range(len(plan.columns)))
    columns = tuple(column.id for column in plan.columns)
    meanings = {
        column.id: left.meanings.get(each.id, "?") for column, each in zip(plan.columns, inputs[0].columns, strict=True)
    }
    rows = digest(plan.operator, plan.all, left.rows, right.rows, *_all(inputs[0]), *_all(inputs[1]))
    traits = Traits(
        append_only=False,
        culprit=f"{plan.operator} (a row of one side changes what is left of the other)",
        keys=frozenset() if plan.all else frozenset({frozenset(columns)}),
        meanings=meanings,
        rows=rows,
        bounded=left.bounded and right.bounded,
    )
    factory = partial(
        SetOperationOperator,
        inputs[0].columns,
        inputs[1].columns,
        plan.operator,
        plan.all,
        plan.columns,
        ttl_ms=planner.ttl_ms,
        zone=planner.zone,
    )
    return Physical(
        plan.operator.capitalize(),
        f"all=[{str(plan.all).lower()}]",
        plan.columns,
        tuple(inputs),
        factory,
        (everything, everything),
        traits,
        State("how often each row is on each side", planner.ttl_ms),
        planner.uid(plan.operator, rows),
    )
