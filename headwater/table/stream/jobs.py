"""Runs queries and INSERTs as jobs of streams."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.common.config_options import IDLE_TIMEOUT, LOCAL_TIME_ZONE, PIPELINE_NAME, STATE_TTL
from headwater.common.configuration import Configuration
from headwater.common.job_client import JobClient
from headwater.datastream.closeable_iterator import CloseableIterator
from headwater.datastream.connectors.collect_sink import CollectSink, collected_results
from headwater.datastream.stream_execution_environment import StreamExecutionEnvironment
from headwater.table.plan import nodes
from headwater.table.plan.nodes import Plan
from headwater.table.stream.connectors.contract import ChangelogMode, TableSink
from headwater.table.stream.connectors.rows import RowsEncoder
from headwater.table.stream.explain import explain_stream
from headwater.table.stream.late_table import LateTable
from headwater.table.stream.physical import Physical
from headwater.table.stream.planner import StreamPlanner
from headwater.table.stream.planner_sinks import end, plan_sink
from headwater.table.stream.planner_sources import scanned_once
from headwater.table.stream.rules import optimised
from headwater.table.stream.rules.prune_columns import columns_read
from headwater.table.stream.translate import Translator

COLLECT = "collect"


def planner_of(configuration: Configuration, plans: Sequence[Plan] = ()) -> StreamPlanner:
    """A planner with the session's settings. `plans`: all that the job will have, if that is known."""
    ttl = configuration.get(STATE_TTL)
    idle = configuration.get(IDLE_TIMEOUT)
    columns = columns_read([optimised(each) for each in plans])
    return StreamPlanner(
        configuration.get(LOCAL_TIME_ZONE), ttl or None, idle or None, once=scanned_once(plans), columns=columns
    )


def plan_query(planner: StreamPlanner, plan: Plan, sink: CollectSink) -> Physical:
    """A query whose changelog comes back to the program."""
    made = planner.plan(plan)
    encoder = RowsEncoder(tuple(c.name for c in plan.columns), tuple(c.type for c in plan.columns))
    return end(planner, made, TableSink(sink, encoder, ChangelogMode.ALL, parallelism=1), COLLECT)


def collect(plan: Plan, configuration: Configuration, late: LateTable | None = None) -> CloseableIterator:
    """Start a query. Its rows come as their epochs are complete."""
    sink = CollectSink()
    planner = planner_of(configuration, [plan])
    physical = plan_query(planner, plan, sink)
    client = launch(planner, [physical], configuration, COLLECT, late)
    return CloseableIterator(client, collected_results(sink.collect_id))


def insert(sinks: Sequence[nodes.Sink], configuration: Configuration, late: LateTable | None = None) -> JobClient:
    """Start INSERTs as one job: tables that several of them read are read once."""
    planner = planner_of(configuration, sinks)
    physical = [plan_sink(planner, each) for each in sinks]
    names = ",".join(str(each.identifier) for each in sinks)
    return launch(planner, physical, configuration, f"insert-into_{names}", late)


def explained(plan: Plan, configuration: Configuration, details: Sequence[str]) -> str:
    """EXPLAIN of a query or an INSERT. Nothing runs."""
    planner = planner_of(configuration, [plan])
    physical = plan_sink(planner, plan) if isinstance(plan, nodes.Sink) else plan_query(planner, plan, CollectSink())
    text = explain_stream(plan, physical, details)
    if "JSON_EXECUTION_PLAN" in details:
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        environment._add_operator(Translator().sink(physical))
        text += f"\n== Physical Execution Plan ==\n{environment.get_execution_plan()}\n"
    return text


def launch(
    planner: StreamPlanner,
    sinks: Sequence[Physical],
    configuration: Configuration,
    name: str,
    late: LateTable | None = None,
) -> JobClient:
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    translator = Translator(keep_late=late is not None)
    for each in sinks:
        environment._add_operator(translator.sink(each))
    if late is not None and translator.late:
        environment._add_operator(translator.sink(late.plan(planner, translator.late)))
    return environment.execute_async(configuration.get(PIPELINE_NAME) if configuration.is_set(PIPELINE_NAME) else name)
