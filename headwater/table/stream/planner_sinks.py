"""Sinks of a physical plan: what a table can take of the changes that a query makes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.plan import nodes
from headwater.table.stream.connectors.contract import ChangelogMode, Field, TableSink
from headwater.table.stream.connectors.registry import connector_of, context_of
from headwater.table.stream.operators.partition_sink import PartitionCommit, PartitionSinkOperator
from headwater.table.stream.operators.sink import AppendSinkOperator, ChangelogSinkOperator, MaterializeOperator
from headwater.table.stream.physical import ROWTIME, Physical, State

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


def plan_sink(planner: StreamPlanner, plan: nodes.Sink) -> Physical:
    """INSERT INTO: the query, and its table."""
    if plan.overwrite:
        raise SqlError(f"INSERT OVERWRITE {plan.identifier}: a stream has no end at which to replace a table")
    if plan.table.rows is not None:
        raise SqlError(f"table '{plan.identifier}' is made of values of the program: nothing can be inserted")
    return into_table(planner, planner.plan(plan.input), plan.identifier, plan.table)


def into_table(planner: StreamPlanner, input: Physical, identifier: Identifier, table: CatalogTable) -> Physical:
    """The rows, and the table that gets them. They have its columns."""
    fields = tuple(Field(each.name, each.type, each.metadata_key) for each in table.schema.sink_columns())
    context = context_of(identifier, table, fields, planner.zone)
    target = connector_of(context).sink(context)
    context.options.check()
    key = table.schema.primary_key if target.uses_key else ()
    return end(planner, input, target, str(identifier), key)


def end(
    planner: StreamPlanner, input: Physical, target: TableSink, table: str, primary_key: tuple[str, ...] = ()
) -> Physical:
    """The operator before the sink: it orders the changes of an epoch, and pairs updates."""
    traits = input.traits
    parallelism = target.parallelism
    uid = planner.uid("sink", table)
    if target.mode is ChangelogMode.APPEND and not traits.append_only:
        raise SqlError(
            f"table '{table}' only takes new rows, and the query updates some: {traits.culprit}. Three cures: close the"
            " result by time (windows, or a time attribute in the join or OVER), insert into a table that takes"
            " updates (a connector with PRIMARY KEY such as upsert-kafka or jdbc, or print), or write the changelog"
            " itself in a format such as debezium-json"
        )
    if target.partitions is not None:
        return _partitions(input, target, target.partitions, table, uid)
    if traits.append_only and not (target.mode is ChangelogMode.UPSERT and primary_key):
        append = partial(AppendSinkOperator, input.columns, target.encoder)
        one: tuple[tuple[int, ...], ...] | None = ((),) if parallelism == 1 else None
        return Physical(
            "Sink", table, input.columns, (input,), append, one, traits, uid=uid, sink=target, parallelism=parallelism
        )
    by_name = {column.name: place for place, column in enumerate(input.columns)}
    upsert = target.mode is ChangelogMode.UPSERT
    if upsert and not primary_key:
        raise SqlError(
            f"table '{table}' replaces rows by key, so it needs a PRIMARY KEY (…) NOT ENFORCED: the query updates rows"
            f" ({traits.culprit})"
        )
    places = tuple(by_name[each] for each in primary_key) if primary_key else _unique_places(input)
    if upsert and places is not None and not traits.append_only:
        input = materialized(planner, input, places, table)
    factory = partial(
        ChangelogSinkOperator,
        input.columns,
        target.encoder,
        places,
        upsert=upsert,
        last_wins=traits.append_only,
        table=table,
    )
    keyed = ((),) if parallelism == 1 or places is None else (places,)
    return Physical(
        "Sink", table, input.columns, (input,), factory, keyed, traits, uid=uid, sink=target, parallelism=parallelism
    )


def materialized(planner: StreamPlanner, input: Physical, places: tuple[int, ...], table: str) -> Physical:
    """The rows, one for each key: known to be so, or looked after."""
    if _implied(input, places):
        return input
    traits = input.traits
    key = [input.columns[place].name for place in places]
    return Physical(
        "SinkMaterialize",
        f"key=[{', '.join(key)}]",
        input.columns,
        (input,),
        partial(MaterializeOperator, input.columns, places, table, planner.ttl_ms),
        (places,),
        replace(traits, keys=frozenset({frozenset(input.columns[place].id for place in places)})),
        State("the rows of each primary key: the query does not promise that there is one", planner.ttl_ms),
        planner.uid("SinkMaterialize", traits.rows, table, *key),
    )


def _partitions(input: Physical, target: TableSink, commit: PartitionCommit, table: str, uid: str) -> Physical:
    """A sink that declares partitions complete: one slot has all rows of a partition, and sees all time pass."""
    if not input.traits.append_only:
        raise SqlError(f"table '{table}': partitions of a changelog are never complete: {input.traits.culprit}")
    event_time = commit.time_ms is not None
    if event_time and not any(ROWTIME in each.traits.times.values() for each in input.walk()):
        raise SqlError(
            f"table '{table}': 'sink.partition-commit.trigger' = 'partition-time' waits for a watermark, and no table"
            " of the query has one; declare WATERMARK FOR …, or use 'process-time'"
        )
    names = [column.name for column in input.columns]
    places = tuple(names.index(name) for name in commit.key)
    return Physical(
        "Sink",
        table,
        input.columns,
        (input,),
        partial(PartitionSinkOperator, input.columns, target.encoder, commit),
        ((),) if target.parallelism == 1 else (places,),
        input.traits,
        State("the partitions that are not complete yet", bounded=True),
        uid,
        sink=target,
        ticks=not event_time,
        parallelism=target.parallelism,
    )


def _unique_places(input: Physical) -> tuple[int, ...] | None:
    """The shortest key of the rows, by place; None if none is known."""
    ids = [column.id for column in input.columns]
    usable = [key for key in input.traits.keys if all(each in ids for each in key)]
    if not usable:
        return None
    best = min(usable, key=lambda key: (len(key), sorted(ids.index(each) for each in key)))
    return tuple(sorted(ids.index(each) for each in best))


def _implied(input: Physical, places: tuple[int, ...] | None) -> bool:
    """Whether a key of the rows is part of these columns: then no two rows have the same."""
    chosen = {input.columns[place].id for place in places or ()}
    return any(key <= chosen for key in input.traits.keys)
