"""What is measured, with which sizes, and what is promised."""

from __future__ import annotations

from benchmarks.case import (
    BARE_LOOP,
    BYTEWAX_ONE,
    BYTEWAX_TWO,
    HEADWATER,
    HEADWATER_OFF,
    LARGE_BUNDLE,
    PARALLELISM,
    PYFLINK,
    PYFLINK_TUNED,
    SPARK_NATIVE,
    SPARK_TRANSFORM,
    Case,
    Contender,
    Lookup,
    Target,
    paired,
)
from benchmarks.checkpoints.cases import checkpoint_cases, checkpoint_targets, rocksdb_contenders
from benchmarks.engines.cases import engine_cases, engine_targets
from benchmarks.formats.cases import format_cases, format_targets
from benchmarks.harness.environments import BYTEWAX, FLINK
from benchmarks.harness.process import Program
from benchmarks.impressions.cases import impression_cases, impression_targets
from benchmarks.in_process.cases import in_process_cases, in_process_targets
from benchmarks.jdbc.cases import jdbc_cases, jdbc_targets
from benchmarks.joins.cases import join_cases, join_targets
from benchmarks.kafka.cases import kafka_cases, kafka_targets
from benchmarks.lakes.cases import lake_cases
from benchmarks.latency.cases import latency_cases, latency_targets
from benchmarks.nexmark.cases import nexmark_cases, nexmark_targets
from benchmarks.patterns.cases import pattern_cases, pattern_targets
from benchmarks.sql_group_by.cases import group_by_cases, group_by_targets
from benchmarks.windows.cases import window_cases, window_targets
from benchmarks.yahoo.cases import yahoo_cases

SPARK_BARE = "bare spark.range(1).count()"
README_COLD = "README's program, no class archive, no bytecode"
README_WARM = "README's program"


def cases() -> tuple[Case, ...]:
    """All cases, in the order in which they run."""
    return (
        _keyed_count("keyed_count_1k", "Keyed count-and-sum, 1,000 keys", 1000),
        _keyed_count("keyed_count_1m", "Keyed count-and-sum, 1,000,000 keys", 1_000_000),
        *window_cases(),
        *join_cases(),
        *kafka_cases(),
        *jdbc_cases(),
        *yahoo_cases(),
        *pattern_cases(),
        *nexmark_cases(),
        *group_by_cases(),
        _grep(),
        *latency_cases(),
        *engine_cases(),
        *impression_cases(),
        _million_keys(),
        _backfill(),
        *checkpoint_cases(),
        _start(),
        *in_process_cases(),
        *format_cases(),
        *lake_cases(),
    )


def targets(cores: int) -> tuple[Target, ...]:
    """All promises."""

    def rate(look: Lookup, case: str, contender: str) -> float:
        return look(case, contender, "rate")

    def best_flink(look: Lookup, case: str) -> float:
        return max(rate(look, case, PYFLINK), rate(look, case, PYFLINK_TUNED))

    return (
        Target(
            "keyed_count_1k",
            "headwater / PyFlink at its defaults, 1 k keys",
            lambda look: rate(look, "keyed_count_1k", HEADWATER) / rate(look, "keyed_count_1k", PYFLINK),
            30.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "keyed_count_1k",
            "headwater / PyFlink at its best, 1 k keys",
            lambda look: rate(look, "keyed_count_1k", HEADWATER) / best_flink(look, "keyed_count_1k"),
            30.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "keyed_count_1k",
            f"headwater / ({cores} cores x bare loop), 1 k keys",
            lambda look: rate(look, "keyed_count_1k", HEADWATER) / (cores * rate(look, "keyed_count_1k", BARE_LOOP)),
            0.20,
            at_least=True,
            shown_as="{:.0%}",
        ),
        Target(
            "keyed_count_1m",
            "headwater / Spark native aggregate with RocksDB, 1 M keys",
            lambda look: rate(look, "keyed_count_1m", HEADWATER) / rate(look, "keyed_count_1m", SPARK_NATIVE),
            4.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "keyed_count_1m",
            "headwater at 1 M keys / headwater at 1 k keys",
            lambda look: rate(look, "keyed_count_1m", HEADWATER) / rate(look, "keyed_count_1k", HEADWATER),
            0.60,
            at_least=True,
            shown_as="{:.0%}",
        ),
        *window_targets(),
        *join_targets(),
        *kafka_targets(),
        *jdbc_targets(),
        *pattern_targets(),
        *nexmark_targets(),
        *group_by_targets(),
        *checkpoint_targets(),
        *in_process_targets(),
        *format_targets(),
        Target(
            "grep",
            "headwater / PyFlink at its defaults, grep",
            lambda look: rate(look, "grep", HEADWATER) / rate(look, "grep", PYFLINK),
            30.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "grep",
            "headwater / PyFlink at its best, grep",
            lambda look: rate(look, "grep", HEADWATER) / best_flink(look, "grep"),
            30.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "grep",
            "cost of exactly-once, grep",
            lambda look: paired(look, "grep", HEADWATER_OFF, HEADWATER) - 1,
            0.10,
            at_least=False,
            shown_as="{:.0%}",
        ),
        *latency_targets(),
        *engine_targets(),
        *impression_targets(),
        Target(
            "memory",
            "1 M keys of small tuples, all slots together, MB (highest seen)",
            lambda look: look("memory", HEADWATER, "peak_mb"),
            600.0,
            at_least=False,
            shown_as="{:.0f}",
        ),
        Target(
            "backfill",
            "backfill of a year: peak in one epoch / peak in 100 epochs",
            lambda look: look("backfill", "one epoch", "peak_mb") / look("backfill", "100 epochs", "peak_mb"),
            2.0,
            at_least=False,
        ),
        Target(
            "start",
            "a ten-record job, `python job.py` to its last line, s",
            lambda look: look("start", "one execute", "wall_s"),
            12.0,
            at_least=False,
            shown_as="{:.1f}",
        ),
        *(
            Target(
                "start",
                f"{contender}, to its first line, s",
                lambda look, contender=contender: look("start", contender, "first_line_s"),
                limit,
                at_least=False,
                shown_as="{:.1f}",
            )
            for contender, limit in ((README_COLD, 9.0), (README_WARM, 5.0))
        ),
        *(
            Target(
                "start",
                f"{contender}, first line / {SPARK_BARE}, last line",
                lambda look, contender=contender: (
                    look("start", contender, "first_line_s") / look("start", SPARK_BARE, "wall_s")
                ),
                limit,
                at_least=False,
            )
            for contender, limit in ((README_COLD, 1.5), (README_WARM, 1.0))
        ),
        Target(
            "start",
            "the README's program when there is nothing to do, s",
            lambda look: look("start", README_WARM, "again_s"),
            1.0,
            at_least=False,
        ),
        Target(
            "start",
            "a second execute() in the same process, s",
            lambda look: look("start", "two executes", "second_execute_s"),
            2.0,
            at_least=False,
        ),
    )


def _keyed_count(name: str, title: str, keys: int) -> Case:
    many = keys > 100_000
    folder = "benchmarks.keyed_count"
    flink = {"keys": keys, "parallelism": PARALLELISM}
    # The start of the slots is part of headwater's run, so it must be a small one.
    records = 8_000_000 if many else 16_000_000
    # Nothing of a bundle is shared when no key repeats in it; a short run is enough to see that.
    flink_records = 10_000 if many else 50_000
    tuned_records = 10_000 if many else 100_000
    bytewax_records = 1_000_000 if many else 2_000_000
    return Case(
        name,
        title,
        "rate",
        "records/s",
        (
            Contender(
                HEADWATER,
                Program(
                    f"{folder}.headwater_job",
                    {"keys": keys, "records": records, "parallelism": PARALLELISM, "interval": "10 s"},
                ),
                repeats=2,
                quick=(("records", 400_000),),
                peer=False,
            ),
            *(rocksdb_contenders(keys) if many else ()),
            Contender(
                PYFLINK,
                Program(f"{folder}.pyflink_job", {**flink, "records": flink_records}, FLINK),
                quick=(("records", 20_000),),
            ),
            Contender(
                PYFLINK_TUNED,
                Program(f"{folder}.pyflink_job", {**flink, "records": tuned_records, "bundle": LARGE_BUNDLE}, FLINK),
                quick=(("records", 20_000),),
            ),
            Contender(
                SPARK_TRANSFORM,
                Program(
                    f"{folder}.spark_transform",
                    {"keys": keys, "batch": 20_000 if many else 200_000, "batches": 4, "parallelism": PARALLELISM},
                    timeout_s=45,
                ),
                quick=(("batch", 5_000), ("batches", 1)),
            ),
            Contender(
                SPARK_NATIVE,
                Program(
                    f"{folder}.spark_native",
                    {"keys": keys, "batch": 1_000_000, "batches": 2 if many else 8, "parallelism": PARALLELISM},
                ),
                quick=(("batch", 100_000), ("batches", 1)),
            ),
            Contender(
                BYTEWAX_ONE,
                Program(f"{folder}.bytewax_job", {"keys": keys, "records": bytewax_records}, BYTEWAX),
                quick=(("records", 100_000),),
            ),
            Contender(
                BYTEWAX_TWO,
                Program(f"{folder}.bytewax_job", {"keys": keys, "records": bytewax_records, "processes": 2}, BYTEWAX),
                quick=(("records", 100_000),),
            ),
            Contender(
                BARE_LOOP,
                Program(f"{folder}.bare_loop", {"keys": keys, "records": records}),
                repeats=1 if many else 2,
                quick=(("records", 400_000),),
                peer=False,
            ),
        ),
        columns=(("records", "records"), ("seconds", "seconds")),
    )


def _grep() -> Case:
    ours = {"records": 40_000_000, "parallelism": PARALLELISM}
    flink = {"records": 1_000_000, "parallelism": PARALLELISM}
    return Case(
        "grep",
        "Stateless map and filter over strings",
        "rate",
        "records/s",
        (
            Contender(
                HEADWATER,
                Program("benchmarks.grep.headwater_job", {**ours, "checkpointing": "true"}),
                repeats=3,
                quick=(("records", 400_000),),
                peer=False,
            ),
            Contender(
                HEADWATER_OFF,
                Program("benchmarks.grep.headwater_job", {**ours, "checkpointing": "false"}),
                repeats=3,
                quick=(("records", 400_000),),
                peer=False,
            ),
            Contender(PYFLINK, Program("benchmarks.grep.pyflink_job", flink, FLINK), quick=(("records", 50_000),)),
            Contender(
                PYFLINK_TUNED,
                Program("benchmarks.grep.pyflink_job", {**flink, "bundle": LARGE_BUNDLE}, FLINK),
                quick=(("records", 50_000),),
            ),
            Contender(
                BARE_LOOP,
                Program("benchmarks.grep.bare_loop", {"records": 10_000_000}),
                quick=(("records", 400_000),),
                peer=False,
            ),
        ),
        columns=(("records", "records"), ("seconds", "seconds")),
    )


def _million_keys() -> Case:
    return Case(
        "memory",
        "1,000,000 keys of small tuples: PSS over all slots and their children",
        "peak_mb",
        "MB, peak",
        (
            Contender(
                HEADWATER,
                Program(
                    "benchmarks.memory.million_keys",
                    {"keys": 1_000_000, "parallelism": PARALLELISM},
                    watch_slots=True,
                ),
                quick=(("keys", 50_000),),
                peer=False,
            ),
        ),
        columns=(("loaded_mb", "MB, last"), ("slots", "slots"), ("rate", "records/s")),
    )


def _backfill() -> Case:
    def run(name: str, epochs: int) -> Contender:
        return Contender(
            name,
            Program(
                "benchmarks.memory.backfill",
                {"records": 10_000_000, "keys": 100, "epochs": epochs, "parallelism": PARALLELISM},
                watch_slots=True,
                timeout_s=900,
            ),
            quick=(("records", 200_000),),
            peer=False,
        )

    return Case(
        "backfill",
        "10,000,000 records over a year, hourly counts per key with timers: PSS over all slots",
        "peak_mb",
        "MB, peak",
        (run("one epoch", 1), run("100 epochs", 100)),
        columns=(("commits", "commits"), ("rate", "records/s"), ("outputs", "outputs")),
    )


def _start() -> Case:
    return Case(
        "start",
        "A ten-record from_collection job, and the README's program",
        "wall_s",
        "s, to the last line",
        (
            Contender("one execute", Program("benchmarks.start.job", {"executions": 1}), repeats=2, peer=False),
            Contender("two executes", Program("benchmarks.start.job", {"executions": 2}), repeats=2, peer=False),
            Contender(SPARK_BARE, Program("benchmarks.start.bare_spark", {}), repeats=2, peer=False),
            Contender(README_COLD, Program("benchmarks.start.readme", {"cold": "true"}), repeats=2, peer=False),
            Contender(README_WARM, Program("benchmarks.start.readme", {"cold": "false"}), repeats=2, peer=False),
        ),
        columns=(
            ("first_execute_s", "s, first execute()"),
            ("second_execute_s", "s, last execute()"),
            ("first_line_s", "s, to the first line"),
            ("again_s", "s, when there is nothing to do"),
        ),
    )
