"""The case of this folder, with its sizes and promises."""

from __future__ import annotations

from benchmarks.case import PARALLELISM, Case, Contender, Lookup, Target, paired
from benchmarks.harness.process import Program

CASE = "impressions"
IN_PLACE = "headwater, queried in place"
CLIENT = "flushed to Redis by redis-py"
RAW = "flushed to Redis by hand-made commands"


def impression_cases() -> tuple[Case, ...]:
    def run(contender: str, results: str) -> Contender:
        sizes = {"keys": 1_000_000, "intervals": 5, "parallelism": PARALLELISM, "results": results}
        program = Program("benchmarks.impressions.job", sizes)
        return Contender(contender, program, repeats=3, quick=(("keys", 20_000), ("intervals", 3)), peer=False)

    return (
        Case(
            CASE,
            "Impressions per tweet and hour: a million keys, all updated in every interval, 1,000 reads/s",
            "rate",
            "updates/s",
            (run(IN_PLACE, "state"), run(RAW, "raw"), run(CLIENT, "redis")),
            columns=(
                ("seconds", "seconds"),
                ("writes", "updates/s until readers find them"),
                ("flushes", "of it, keys/s to Redis"),
                ("read_p50_ms", "read p50, ms"),
                ("read_p99_ms", "read p99, ms"),
                ("reads_per_second", "answers/s"),
                ("not_answered", "reads without an answer"),
            ),
        ),
    )


def impression_targets() -> tuple[Target, ...]:
    def writes(look: Lookup, other: str) -> float:
        return look(CASE, IN_PLACE, "writes") / look(CASE, other, "writes")

    return (
        Target(
            CASE,
            "updates until readers find them: in place / flushed by redis-py",
            lambda look: writes(look, CLIENT),
            5.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            CASE,
            "updates until readers find them: in place / flushed by hand-made commands",
            lambda look: writes(look, RAW),
            5.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            CASE,
            "the whole job: queried in place / flushed to Redis by redis-py",
            lambda look: paired(look, CASE, IN_PLACE, CLIENT),
            1.0,
            at_least=True,
            shown_as="{:.2f} x",
        ),
        Target(
            CASE,
            "read of a key in place at 1,000 reads/s, p99, ms",
            lambda look: look(CASE, IN_PLACE, "read_p99_ms"),
            50.0,
            at_least=False,
            shown_as="{:.1f}",
        ),
    )
