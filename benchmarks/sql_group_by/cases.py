"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import HEADWATER, PARALLELISM, SPARK_NATIVE, Case, Contender, Target, paired
from benchmarks.harness.process import Program

FOLDER = "benchmarks.sql_group_by"
CASE = "sql_group_by"
KEYS = 1_000_000


def group_by_cases() -> tuple[Case, ...]:
    return (
        Case(
            CASE,
            "SQL: COUNT and SUM by 1,000,000 integer keys, a checkpoint every second",
            "rate",
            "rows/s",
            (
                Contender(
                    HEADWATER,
                    Program(
                        f"{FOLDER}.headwater_group_by",
                        {"records": 20_000_000, "keys": KEYS, "parallelism": PARALLELISM},
                    ),
                    quick=(("records", 100_000), ("keys", 1_000)),
                    peer=False,
                ),
                Contender(
                    SPARK_NATIVE,
                    Program(
                        f"{FOLDER}.spark_native",
                        {"batch": 1_000_000, "batches": 4, "keys": KEYS, "parallelism": PARALLELISM},
                    ),
                    quick=(("batch", 20_000), ("batches", 1), ("keys", 1_000)),
                ),
            ),
            columns=(
                ("records", "rows"),
                ("seconds", "seconds"),
                ("cpu_us", "µs of processor time per row"),
            ),
        ),
    )


def group_by_targets() -> tuple[Target, ...]:
    return (
        Target(
            CASE,
            "SQL: COUNT and SUM by 1 M integer keys, rows/s on two cores",
            lambda look: look(CASE, HEADWATER, "rate"),
            1_500_000,
            at_least=True,
            shown_as="{:,.0f}",
        ),
        Target(
            CASE,
            "SQL: COUNT and SUM by 1 M integer keys: headwater / Spark native aggregate with RocksDB",
            lambda look: paired(look, CASE, HEADWATER, SPARK_NATIVE),
            5.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
    )
