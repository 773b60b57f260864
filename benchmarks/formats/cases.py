"""The case of this folder, and its promises."""

from __future__ import annotations

from benchmarks.case import HEADWATER, Case, Contender, Target
from benchmarks.harness.process import Program

_COLUMNS = ("json_loads", "json_rows", "avro_dicts", "avro_rows", "parquet_dicts", "parquet_rows", "parquet_batches")


def format_cases() -> tuple[Case, ...]:
    return (
        Case(
            "formats",
            "Decoding records of five fields, one core: messages of JSON and Avro, rows of Parquet",
            "avro_dicts",
            "Avro/s",
            (
                Contender(
                    HEADWATER,
                    Program("benchmarks.formats.decode", {"records": 100_000}),
                    quick=(("records", 10_000),),
                    peer=False,
                ),
            ),
            columns=tuple((name, name.replace("_", " ")) for name in _COLUMNS),
        ),
    )


def format_targets() -> tuple[Target, ...]:
    return (
        _ratio("avro_dicts", "Avro messages to dicts / json.loads", 0.8),
        Target(
            "formats",
            "Avro messages to dicts, messages/s of one core",
            lambda look: look("formats", HEADWATER, "avro_dicts"),
            150_000.0,
            at_least=True,
            shown_as="{:,.0f}",
        ),
        _ratio("json_rows", "JSON messages to Rows / json.loads", 0.8),
        Target(
            "formats",
            "Parquet into Arrow, rows/s of one core",
            lambda look: look("formats", HEADWATER, "parquet_batches"),
            1_000_000.0,
            at_least=True,
            shown_as="{:,.0f}",
        ),
    )


def _ratio(fact: str, text: str, limit: float) -> Target:
    return Target(
        "formats",
        text,
        lambda look: look("formats", HEADWATER, f"{fact}_ratio"),
        limit,
        at_least=True,
        shown_as="{:.2f} x",
    )
