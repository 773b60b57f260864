"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import (
    HEADWATER,
    LARGE_BUNDLE,
    PARALLELISM,
    PYFLINK,
    PYFLINK_TUNED,
    Case,
    Contender,
    Lookup,
    Target,
)
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

FOLDER = "benchmarks.windows"
SLICES = "60 windows at a time, by slices"
PANES = {panes: f"{panes} window{'s' * (panes > 1)} at a time" for panes in (1, 10, 60)}


def window_cases() -> tuple[Case, ...]:
    return (
        _tumbling("tumbling_sum_1k", "Sum per key and 10 s, tumbling windows in event time, 1,000 keys", 1000),
        _tumbling("tumbling_sum_1m", "Sum per key and 10 s, tumbling windows in event time, 1,000,000 keys", 1_000_000),
        _sliding(),
        _sliding_memory(),
    )


def window_targets() -> tuple[Target, ...]:
    return (
        *_tumbling_targets("tumbling_sum_1k", "keyed_count_1k", "1 k keys"),
        *_tumbling_targets("tumbling_sum_1m", "keyed_count_1m", "1 M keys"),
        Target(
            "sliding_mean",
            "cost of a record in 10 windows / in 1",
            lambda look: _rate(look, PANES[1]) / _rate(look, PANES[10]),
            10.0,
            at_least=False,
            shown_as="{:.1f} x",
        ),
        Target(
            "sliding_mean",
            "cost of a record in 60 windows / in 10",
            lambda look: _rate(look, PANES[10]) / _rate(look, PANES[60]),
            6.0,
            at_least=False,
            shown_as="{:.1f} x",
        ),
        Target(
            "sliding_mean",
            "60 windows: by slices / adding to each window",
            lambda look: _rate(look, SLICES) / _rate(look, PANES[60]),
            4.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
    )


def _rate(look: Lookup, contender: str) -> float:
    return look("sliding_mean", contender, "rate")


def _tumbling_targets(case: str, keyed_count: str, keys: str) -> tuple[Target, ...]:
    def best_flink(look: Lookup) -> float:
        return max(look(case, PYFLINK, "rate"), look(case, PYFLINK_TUNED, "rate"))

    return (
        Target(
            case,
            f"tumbling sum: headwater / PyFlink at its best, {keys}",
            lambda look: look(case, HEADWATER, "rate") / best_flink(look),
            30.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            case,
            f"tumbling sum / keyed count-and-sum, both headwater, {keys}",
            lambda look: look(case, HEADWATER, "rate") / look(keyed_count, HEADWATER, "rate"),
            0.70,
            at_least=True,
            shown_as="{:.0%}",
        ),
    )


def _tumbling(name: str, title: str, keys: int) -> Case:
    many = keys > 100_000
    flink: dict[str, str | int | float] = {
        "keys": keys,
        "parallelism": PARALLELISM,
        "records": 10_000 if many else 20_000,
    }
    return Case(
        name,
        title,
        "rate",
        "records/s",
        (
            Contender(
                HEADWATER,
                Program(
                    f"{FOLDER}.headwater_tumbling", {"keys": keys, "records": 8_000_000, "parallelism": PARALLELISM}
                ),
                quick=(("records", 400_000),),
                peer=False,
            ),
            Contender(
                PYFLINK, Program(f"{FOLDER}.pyflink_tumbling", flink, FLINK, timeout_s=180), quick=(("records", 5_000),)
            ),
            Contender(
                PYFLINK_TUNED,
                Program(f"{FOLDER}.pyflink_tumbling", {**flink, "bundle": LARGE_BUNDLE}, FLINK, timeout_s=180),
                quick=(("records", 5_000),),
            ),
        ),
        columns=(("records", "records"), ("seconds", "seconds"), ("outputs", "outputs")),
    )


def _sliding() -> Case:
    def run(name: str, size: int, merge: str) -> Contender:
        sizes: dict[str, str | int | float] = {
            "size": size,
            "merge": merge,
            "records": 1_200_000,
            "keys": 1000,
            "per-minute": 10_000,
        }
        return Contender(
            name,
            Program(f"{FOLDER}.sliding", {**sizes, "parallelism": PARALLELISM}),
            quick=(("records", 50_000),),
            peer=False,
        )

    return Case(
        "sliding_mean",
        "Mean per key in windows that begin every minute, 1,000 keys with 10 records a minute, for 2 hours",
        "rate",
        "records/s",
        (*(run(name, panes, "false") for panes, name in PANES.items()), run(SLICES, 60, "true")),
        columns=(("records", "records"), ("seconds", "seconds"), ("outputs", "outputs")),
    )


def _sliding_memory() -> Case:
    return Case(
        "sliding_memory",
        "Count in windows of 1 h that begin every minute, 100,000 keys with a record a minute: PSS over all slots",
        "peak_mb",
        "MB, peak",
        (
            Contender(
                HEADWATER,
                Program(
                    "benchmarks.memory.sliding_hour",
                    {"keys": 100_000, "parallelism": PARALLELISM},
                    watch_slots=True,
                ),
                quick=(("keys", 2_000),),
                peer=False,
            ),
        ),
        columns=(("loaded_mb", "MB, last"), ("slots", "slots"), ("rate", "records/s"), ("outputs", "outputs")),
    )
