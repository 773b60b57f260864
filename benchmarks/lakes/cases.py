"""The case of this folder."""

from __future__ import annotations

from benchmarks.case import HEADWATER, Case, Contender
from benchmarks.harness.process import Program

_SINKS = ("lines", "json", "parquet", "delta", "iceberg")


def lake_cases() -> tuple[Case, ...]:
    return (
        Case(
            "lakes",
            "Writing records of five fields to files and tables, one core; and the commit of a small epoch",
            "parquet_rows",
            "Parquet rows/s",
            (
                Contender(
                    HEADWATER,
                    Program("benchmarks.lakes.write", {"records": 200_000}),
                    quick=(("records", 10_000),),
                    peer=False,
                ),
            ),
            columns=tuple(
                (f"{name}_{fact}", f"{name} {text}")
                for name in _SINKS
                for fact, text in (("rows", "rows/s"), ("commit_ms", "commit ms"))
            ),
        ),
    )
