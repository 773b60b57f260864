"""Runs queries of tables in batch mode: Spark SQL by Catalyst, with adaptive execution; rows come back as Arrow."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headwater.common.config_options import LOCAL_TIME_ZONE, PYTHON_FILES
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError, JobFailedError
from headwater.runtime.spark.kernel_udfs import register_kernels
from headwater.runtime.spark.python_files import ship
from headwater.runtime.spark.session import spark_context
from headwater.runtime.spark.settings import settings_of
from headwater.table.batch.connectors import Blackhole, Files, MemorySource, Print, QuerySource, Sink, source_of
from headwater.table.batch.literals import quoted
from headwater.table.batch.match_rows import MatchRows
from headwater.table.batch.rows import changelog_text
from headwater.table.batch.spark_expressions import column_name
from headwater.table.batch.spark_sql import BatchQuery
from headwater.table.plan.match import Match
from headwater.table.types.arrow import to_arrow
from headwater.table.types.spark import spark_type

_SAYS_NOTHING = ("Exception thrown in awaitResult", "Job aborted due to stage failure")

_REJECTED = "_headwater_rejected"
"""The column of Spark's own that has a line of which something could not be read."""

_sessions: dict[tuple[Any, str], SparkSession] = {}  # {(Spark context, time zone): the session of SQL}


def _session(configuration: Configuration) -> SparkSession:
    """A session of its own on the program's Spark: its settings and views do not meet the program's."""
    context = spark_context(settings_of(configuration, "headwater SQL"))
    files: list[str] | None = configuration.get(PYTHON_FILES)
    ship(context, files or ())
    zone = configuration.get(LOCAL_TIME_ZONE)
    session = _sessions.get((context, zone))
    if session is None:
        for known in [key for key in _sessions if key[0] is not context]:  # of a Spark that was stopped
            del _sessions[known]
        session = SparkSession(context).newSession()
        session.conf.set("spark.sql.session.timeZone", zone)
        session.conf.set("spark.sql.adaptive.enabled", "true")
        session.conf.set("spark.sql.ansi.enabled", "true")
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        session.conf.set("spark.sql.legacy.allowNegativeScaleOfDecimal", "false")
        if not context.getConf().contains("spark.sql.shuffle.partitions"):
            session.conf.set("spark.sql.shuffle.partitions", str(max(4, 2 * context.defaultParallelism)))
        _sessions[context, zone] = session
    return session


@contextmanager
def _told() -> Iterator[None]:
    """An error of Spark as one of ours, without the wall of Java."""
    try:
        yield
    except PySparkException as error:
        text = str(error).split("\n\nJVM stacktrace")[0].strip()
        raise JobFailedError(f"Spark could not run the query: {_said(text)}") from error
    except Py4JJavaError as error:
        raise JobFailedError(f"Spark could not run the query: {_causes(error.java_exception)}") from error


def _said(text: str) -> str:
    """What an error says: the first line, or all that an error of headwater has to say."""
    _, _, of_ours = text.rpartition(f"{HeadwaterError.__module__}.")
    return of_ours.partition(": ")[2][:2000].strip() if of_ours != text else text.splitlines()[0][:2000]


def _causes(exception: Any) -> str:
    """What the causes of a Java exception say, without those that say nothing but that there is one."""
    said: list[str] = []
    while exception is not None:
        message = exception.getMessage()
        first = str(message).strip().splitlines()[0][:500] if message else ""
        if first and not first.startswith(_SAYS_NOTHING) and first not in said:
            said.append(first)
        exception = exception.getCause()
    return ": ".join(said) or "no reason was given"


def collect(query: BatchQuery, configuration: Configuration) -> pa.Table:
    with _told():
        return _typed(_frame(query, configuration).toArrow(), query)


def dataframe(query: BatchQuery, configuration: Configuration) -> DataFrame:
    frame = _frame(query, configuration)
    names = [each.name for each in query.row_type.fields]
    return _moved(frame.toDF(*names), SparkSession(frame.sparkSession.sparkContext))


def explain(query: BatchQuery, configuration: Configuration) -> str:
    with _told():
        frame = _frame(query, configuration)
        return str(frame._jdf.queryExecution().toString())


def schema_of(dataframe: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(dataframe.schema)


def write(query: BatchQuery, sink: Sink, overwrite: bool, configuration: Configuration) -> int | None:
    with _told():
        frame = _frame(query, configuration)
        match sink:
            case Blackhole():
                frame.write.format("noop").mode("overwrite").save()
                return None
            case Print():
                out = sys.stderr if sink.standard_error else sys.stdout
                for line in changelog_text(_typed(frame.toArrow(), query), query.row_type):
                    print(f"{sink.prefix}> {line}" if sink.prefix else line, file=out)
                return None
            case Files():
                names = [each.name for each in query.row_type.fields]
                writer = frame.toDF(*names).write.format(sink.format).mode("overwrite" if overwrite else "append")
                if sink.partition_by:
                    writer = writer.partitionBy(*sink.partition_by)
                writer.options(**sink.options).save(sink.path)
                return None


def _frame(query: BatchQuery, configuration: Configuration) -> DataFrame:
    session = _session(configuration)
    register_kernels(session, query.kernels, configuration.get(LOCAL_TIME_ZONE))
    with _told():
        for name, scan in query.sources.items():
            _register(session, name, source_of(scan.identifier, scan.table))
        try:
            for name, (sql, node) in query.matches.items():
                _matched(session.sql(sql), node).createOrReplaceTempView(name)
            return session.sql(query.sql)  # from now on the query knows its tables: their names can go
        finally:
            for name in (*query.sources, *query.matches):
                session.catalog.dropTempView(name)


def _matched(rows: DataFrame, node: Match) -> DataFrame:
    """What MATCH_RECOGNIZE tells of `rows`."""
    schema = ", ".join(f"{column_name(column)} {spark_type(column.type)}" for column in node.columns)
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone")
    match = MatchRows(node, zone, round(time.time() * 1000))
    return rows.mapInArrow(lambda batches: match(batches), schema)  # Spark asks for a function


def _register(session: SparkSession, name: str, source: Any) -> None:
    match source:
        case QuerySource():
            frame = session.sql(source.sql)
        case Files():
            frame = _files(session, source)
        case MemorySource(rows=pa.Table()):
            frame = session.createDataFrame(_for_spark(source.rows))
        case _:
            frame = _moved(source.rows, session)
    frame.createOrReplaceTempView(name)


def _files(session: SparkSession, files: Files) -> DataFrame:
    lenient = files.options.get("mode") == "PERMISSIVE"
    columns = [f"{quoted(each.name)} {spark_type(each.type)}" for each in files.row_type.fields]
    schema = ", ".join([*columns, f"{_REJECTED} STRING"] if lenient else columns)
    options = {**files.options, **({"columnNameOfCorruptRecord": _REJECTED} if lenient else {})}
    frame = session.read.format(files.format).options(**options).schema(schema).load(files.path)
    names = [quoted(each.name) for each in files.row_type.fields]
    if lenient:
        # Spark does not read a column that nobody needs, and then finds nothing wrong in it: so all are needed.
        nulls = " + ".join(f"int({name} IS NULL)" for name in names)
        is_row = f"startswith(ltrim({_REJECTED}), '{{') AND get_json_object({_REJECTED}, '$') IS NOT NULL"
        whole = f"({is_row})" if files.format == "json" else "true"
        frame = frame.where(f"(isnull({_REJECTED}) OR {whole}) AND {nulls} >= int(isnull({_REJECTED})) - 1")
    return frame.selectExpr(
        *(
            f"coalesce({name}, '') AS {name}" if each.name in files.empty_texts else name
            for name, each in zip(names, files.row_type.fields, strict=True)
        )
    )


def _moved(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The DataFrame as one of another session of the same Spark."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    plan = frame._jdf.queryExecution().analyzed()
    dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(dataset, session)


def _for_spark(table: pa.Table) -> pa.Table:
    """Spark has no TIME: it gets the milliseconds."""
    for place, each in enumerate(table.schema):
        if pa.types.is_time32(each.type):
            table = table.set_column(place, each.name, table.column(place).cast(pa.int32()))
    return table


def _typed(table: pa.Table, query: BatchQuery) -> pa.Table:
    """Spark's columns with the names and the Arrow types of the query's."""
    columns = [
        column.cast(to_arrow(each.type)) if column.type != to_arrow(each.type) else column
        for column, each in zip(table.columns, query.row_type.fields, strict=True)
    ]
    return pa.table(columns, names=[each.name for each in query.row_type.fields])
