"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import HEADWATER, LARGE_BUNDLE, PARALLELISM, PYFLINK, PYFLINK_TUNED, Case, Contender, Target
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

RECORDS = 2_000_000
TWICE = "headwater, twice the records"


def join_cases() -> tuple[Case, ...]:
    return (
        _join("window", "Window join (tumbling, 10 s) of two streams, 5,000 keys, one partner on average"),
        _join("interval", "Interval join (0 to 10 s) of two streams, 5,000 keys, one partner on average"),
    )


def join_targets() -> tuple[Target, ...]:
    return tuple(target for kind in ("window", "interval") for target in _targets(kind))


def _targets(kind: str) -> tuple[Target, ...]:
    case = f"{kind}_join"
    return (
        Target(
            case,
            f"{kind} join: headwater / PyFlink's co-process function at its best",
            lambda look: (
                look(case, HEADWATER, "rate") / max(look(case, PYFLINK, "rate"), look(case, PYFLINK_TUNED, "rate"))
            ),
            20.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            case,
            f"{kind} join: peak memory with twice the records / with the records",
            lambda look: look(case, TWICE, "peak_mb") / look(case, HEADWATER, "peak_mb"),
            1.5,
            at_least=False,
        ),
    )


def _join(kind: str, title: str) -> Case:
    def ours(name: str, records: int) -> Contender:
        return Contender(
            name,
            Program(
                "benchmarks.joins.headwater_join",
                {"kind": kind, "records": records, "parallelism": PARALLELISM},
                watch_slots=True,
            ),
            quick=(("records", 40_000),),
            peer=False,
        )

    def flink(name: str, bundle: int) -> Contender:
        sizes: dict[str, str | int | float] = {
            "kind": kind,
            "records": 12_000,
            "parallelism": PARALLELISM,
            "bundle": bundle,
        }
        return Contender(
            name,
            Program("benchmarks.joins.pyflink_join", sizes, FLINK, timeout_s=180),
            quick=(("records", 4_000),),
        )

    return Case(
        f"{kind}_join",
        title,
        "rate",
        "records/s",
        (ours(HEADWATER, RECORDS), ours(TWICE, 2 * RECORDS), flink(PYFLINK, 0), flink(PYFLINK_TUNED, LARGE_BUNDLE)),
        columns=(
            ("records", "records"),
            ("seconds", "seconds"),
            ("outputs", "outputs"),
            ("peak_mb", "MB in slots, peak"),
        ),
    )
