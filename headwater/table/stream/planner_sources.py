"""Sources of a physical plan: tables, their metadata columns, and their watermarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.common.secrets import names_a_secret
from headwater.table.plan import nodes
from headwater.table.plan.expressions import Column, FunctionCall, Rex, SubqueryRex, ref
from headwater.table.plan.nodes import Plan
from headwater.table.stream.changes import schema_of
from headwater.table.stream.connectors.contract import ChangelogMode, Field, TableSource
from headwater.table.stream.connectors.registry import connector_of, context_of
from headwater.table.stream.connectors.values import values_source
from headwater.table.stream.operators.calc import Compute
from headwater.table.stream.operators.to_changes import ToChangesOperator
from headwater.table.stream.operators.upsert import UpsertOperator
from headwater.table.stream.operators.watermarks import WatermarkOperator
from headwater.table.stream.physical import ROWTIME, Physical, State, Traits
from headwater.table.stream.state_ids import digest

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


IDLE_TIMEOUT = "scan.watermark.idle-timeout"


def scanned_once(plans: Sequence[Plan]) -> frozenset[str]:
    """The tables that stand once in all these plans: a source of theirs may leave rows out, nobody else reads it."""
    counts: Counter[str] = Counter()

    def count(plan: Plan) -> None:
        if isinstance(plan, nodes.Scan):
            counts[str(plan.identifier)] += 1
        for rex in plan.rexes():
            for each in rex.walk():
                if isinstance(each, SubqueryRex):
                    count(each.plan)
        for input in plan.inputs():
            count(input)

    for plan in plans:
        count(plan)
    return frozenset(table for table, number in counts.items() if number == 1)


def scan_source(planner: StreamPlanner, scan: nodes.Scan, filters: tuple[Rex, ...] = ()) -> Physical:
    """A table. A second scan of the same table reads the same source: both see the same rows in every epoch.

    `filters`: conditions right above the scan. Rows that do not meet them may be missing.
    """
    rows = scan.table.rows
    key: tuple[object, ...] = ("rows", id(rows))
    if rows is None:
        columns = tuple((column.name, column.type.sql()) for column in scan.columns)
        key = (str(scan.identifier), tuple(sorted(scan.table.options.items())), columns)
    found = planner.sources.get(key)
    if found is None:
        # The rows are kept with it: as long as they are there, no others have their id.
        pushed = filters if str(scan.identifier) in planner.once else ()
        found = planner.sources[key] = _source(planner, scan, pushed), rows
    known = found[0]
    if planner.keep_versions and known.kind == "ChangelogNormalize":
        known = replace(known.inputs[0], traits=known.traits)
    if known.columns == scan.columns:
        return known
    by_name = {column.name: column for column in known.columns}
    items = tuple((column, ref(by_name[column.name])) for column in scan.columns)
    return planner.calc(known, [Compute(items)])


def _source(planner: StreamPlanner, scan: nodes.Scan, filters: tuple[Rex, ...]) -> Physical:
    name = scan.identifier.name
    table = scan.table
    metadata = {column.name: column.metadata_key for column in table.schema.columns}
    fields = tuple(Field(column.name, column.type, metadata[column.name]) for column in scan.columns)
    context = context_of(scan.identifier, table, fields, planner.zone, filters)
    identity = () if table.rows is not None else _identity(table.options, connector_of(context).data_options)
    rows = digest("scan", scan.identifier, *identity)
    meanings = {column.id: f"{name}.{column.name}" for column in scan.columns}
    traits = Traits(rows=rows, meanings=meanings)
    if isinstance(table.rows, Physical):
        return replace(table.rows, traits=replace(table.rows.traits, rows=rows))
    if table.rows is not None:
        if not isinstance(table.rows, pa.Table):
            raise SqlError("a DataFrame of Spark is no stream: use StreamExecutionEnvironment.from_dataframe()")
        source = values_source(table.rows, schema_of(scan.columns))
        return convert(planner, source, scan.columns, name, name, traits)
    if context.duration_ms(IDLE_TIMEOUT) is not None and table.schema.watermark is None:
        raise context.error(f"'{IDLE_TIMEOUT}' is about a WATERMARK, and the table has none")
    source = connector_of(context).source(context)
    context.options.check()
    made = convert(planner, source, scan.columns, f"{name}[source]", str(scan.identifier), traits)
    primary_key = [column for column in scan.columns if column.name in table.schema.primary_key]
    if source.mode is ChangelogMode.APPEND:
        return made
    keys = frozenset({frozenset(column.id for column in primary_key)} if primary_key else ())
    culprit = f"the source '{name}' (its rows are updated and deleted where they come from)"
    traits = replace(made.traits, append_only=False, keys=keys, culprit=culprit)
    if source.mode is ChangelogMode.ALL:
        return replace(made, traits=traits)
    if not primary_key:
        raise context.error("it is a table of rows that replace each other, so it needs a PRIMARY KEY (…) NOT ENFORCED")
    places = tuple(made.place(column) for column in primary_key)
    return Physical(
        "ChangelogNormalize",
        f"key=[{', '.join(column.name for column in primary_key)}]",
        made.columns,
        (made,),
        partial(UpsertOperator, made.columns, places, planner.ttl_ms),
        (places,),
        traits,
        State("the last row of each primary key", planner.ttl_ms),
        planner.uid("ChangelogNormalize", rows, sorted(meanings.values())),
    )


def _identity(options: Mapping[str, str], data_options: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """What of a table's options its rows are known by. A new password is the same table."""
    return sorted(
        (key, value)
        for key, value in options.items()
        if key != IDLE_TIMEOUT
        and (key == "connector" or key in data_options if data_options is not None else not names_a_secret(key))
    )


def convert(
    planner: StreamPlanner, source: TableSource, columns: Sequence[Column], name: str, table: str, traits: Traits
) -> Physical:
    """A source, and behind it what makes changes of its records."""
    read = Physical("Source", name, (), source=source, parallelism=source.parallelism, uid=planner.uid("source", table))
    factory = partial(ToChangesOperator, source.converter, tuple(columns), table, planner.zone)
    return Physical(
        "TableSourceScan",
        f"table=[{table}], fields=[{', '.join(column.name for column in columns)}]"
        + (f", filter=[{source.pushed}]" if source.pushed else ""),
        tuple(columns),
        (read,),
        factory,
        traits=replace(traits, bounded=source.source.bounded),
    )


def watermark(planner: StreamPlanner, plan: nodes.Watermark) -> Physical:
    from headwater.table.plan.explain import text

    input = planner.build(plan.input)
    if isinstance(plan.expression, FunctionCall) and plan.expression.name == "SOURCE_WATERMARK":
        traits = replace(input.traits, times={**input.traits.times, plan.time.id: ROWTIME})
        return replace(input, traits=traits)
    if input.kind == "ChangelogNormalize" or any(each.keys is not None for each in input.walk()):
        detail = "not per split: rows are normalised by key first"
    else:
        detail = ""
    idle_timeout_ms = _idle_timeout_ms(planner, plan.input)
    factory = partial(
        WatermarkOperator, input.columns, plan.time, plan.expression, input.detail, idle_timeout_ms, planner.zone
    )
    traits = replace(input.traits, times={**input.traits.times, plan.time.id: ROWTIME})
    return Physical(
        "WatermarkAssigner",
        f"rowtime=[{plan.time.name}], watermark=[{text(plan.expression)}]" + (f" ({detail})" if detail else ""),
        input.columns,
        (input,),
        factory,
        traits=traits,
        per_split=True,
        ticks=idle_timeout_ms is not None,
    )


def _idle_timeout_ms(planner: StreamPlanner, plan: Plan) -> int | None:
    """After how long without rows a part of the table is idle: as the table says, or else the session."""
    while isinstance(plan, nodes.Project | nodes.Filter):
        plan = plan.input
    if not isinstance(plan, nodes.Scan):
        return planner.idle_timeout_ms
    return context_of(plan.identifier, plan.table, (), planner.zone).duration_ms(IDLE_TIMEOUT, planner.idle_timeout_ms)
