"""Flink's MATCH_RECOGNIZE in the JVM, no Python in it: the same three steps, hashmap state, no checkpoints.

`--follows next`: PATTERN (L M H); `followed_by`: with reluctant loops between them, as SQL has no other way to say it.
Start-up is left out: the time of a job of a thousand events, run before, is subtracted.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.table import Schema, StreamTableEnvironment

from benchmarks.flink_environment import flink_environment
from benchmarks.harness.cpu import cpu_seconds, mark_processes, marked_processes
from benchmarks.patterns.events import HIGH, KEY_SQL, KEYS, LOW, TIME_SQL, VALUE_SQL, WITHIN_MS
from benchmarks.workload import arguments, report

MATCH = """
SELECT k, low, middle, high FROM events MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts
  MEASURES L.t AS low, M.t AS middle, H.t AS high
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN ({pattern}) WITHIN INTERVAL '{minutes}' MINUTE
  DEFINE L AS L.v < {low}, M AS M.v >= {low} AND M.v < {high}, H AS H.v >= {high}{others}
)"""
STRICT = ("L M H", "")
RELAXED = (
    "L X*? M Y*? H",
    ", X AS X.v < {low} OR X.v >= {high}, Y AS Y.v < {high}",
)


def query(follows: str) -> str:
    pattern, others = STRICT if follows == "next" else RELAXED
    others = others.format(low=LOW, high=HIGH)
    return MATCH.format(pattern=pattern, others=others, low=LOW, high=HIGH, minutes=WITHIN_MS // 60_000)


def run(records: int, keys: int, parallelism: int, follows: str) -> tuple[float, int]:
    """(seconds, matches). The matches go to files, whose lines are counted: none may have been dropped as late."""
    env = flink_environment(parallelism)
    tables = StreamTableEnvironment.create(env)
    time_ms = TIME_SQL.format(half=records // 2)
    schema = (
        Schema.new_builder()
        .column_by_expression("k", KEY_SQL.format(keys=keys))
        .column_by_expression("v", VALUE_SQL)
        .column_by_expression("t", time_ms)
        .column_by_expression("ts", f"TO_TIMESTAMP_LTZ({time_ms}, 3)")
        .watermark("ts", "ts")
        .build()
    )
    # A source for each half: of one source with two splits, a task that starts early reads both, one after the other.
    halves = [(0, records // 2), (records // 2, records)]
    for number, (begin, end) in enumerate(halves):
        source = NumberSequenceSource(begin, end - 1)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), f"numbers {number}", Types.LONG())
        numbers.set_parallelism(1)
        tables.create_temporary_view(f"half_{number}", tables.from_data_stream(numbers, schema))
    both = " UNION ALL ".join(f"SELECT k, v, t, ts FROM half_{number}" for number in range(len(halves)))
    tables.execute_sql(f"CREATE TEMPORARY VIEW events AS {both}")
    folder = tempfile.mkdtemp(dir=Path.cwd())
    tables.execute_sql(
        "CREATE TEMPORARY TABLE files (k BIGINT, low BIGINT, middle BIGINT, high BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{folder}')"
    )
    started = time.monotonic()
    tables.execute_sql(f"INSERT INTO files {query(follows)}").wait()
    seconds = time.monotonic() - started
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return seconds, sum(path.read_bytes().count(b"\n") for path in files)


def main() -> None:
    options = arguments(records=2_000_000, keys=KEYS, parallelism=2, follows="next")
    mark = mark_processes()
    start_s, _ = run(1000, options.keys, options.parallelism, options.follows)
    before = sum(map(cpu_seconds, marked_processes(mark)))
    seconds, outputs = run(options.records, options.keys, options.parallelism, options.follows)
    cpu_s = sum(map(cpu_seconds, marked_processes(mark))) - before
    seconds = max(seconds - start_s, 1e-3)
    report(
        records=options.records,
        seconds=seconds,
        rate=options.records / seconds,
        outputs=outputs,
        cpu_us=cpu_s / options.records * 1e6,
        start_s=start_s,
    )


if __name__ == "__main__":
    main()
