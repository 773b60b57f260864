"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import HEADWATER, PARALLELISM, Case, Contender, Target, paired
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

FOLDER = "benchmarks.patterns"
FLINK_SQL = "Flink SQL MATCH_RECOGNIZE (JVM)"
TEN_TIMES = "headwater, ten times the events"
RECORDS = 3_000_000
REPEATS = 3


def pattern_cases() -> tuple[Case, ...]:
    return (
        _pattern("next", "Three steps, one right after the other, within 10 minutes, 10,000 keys"),
        _pattern("followed_by", "Three steps with anything in between, within 10 minutes, 10,000 keys"),
        _memory(),
        _many(),
    )


def pattern_targets() -> tuple[Target, ...]:
    return (
        Target(
            "pattern_next",
            "three steps within 10 minutes, events/s on two cores",
            lambda look: look("pattern_next", HEADWATER, "rate"),
            150_000,
            at_least=True,
            shown_as="{:,.0f}",
        ),
        *(
            Target(
                f"pattern_{follows}",
                f"three steps ({follows}): headwater / Flink SQL in the JVM",
                lambda look, case=f"pattern_{follows}": paired(look, case, HEADWATER, FLINK_SQL),  # type: ignore[misc]
                0.5,
                at_least=True,
            )
            for follows in ("next", "followed_by")
        ),
        Target(
            "pattern_memory",
            "patterns: peak memory of ten times the events / of the events",
            lambda look: look("pattern_memory", TEN_TIMES, "peak_mb") / look("pattern_memory", HEADWATER, "peak_mb"),
            1.3,
            at_least=False,
        ),
        Target(
            "pattern_many",
            "10,000 patterns / 100 patterns, events/s with as many matches",
            lambda look: (
                look("pattern_many", _many_name(10_000), "rate") / look("pattern_many", _many_name(100), "rate")
            ),
            0.4,
            at_least=True,
        ),
    )


def _pattern(follows: str, title: str) -> Case:
    sizes: dict[str, str | int | float] = {"follows": follows, "records": RECORDS, "parallelism": PARALLELISM}
    quick = (("records", 100_000),)
    return Case(
        f"pattern_{follows}",
        title,
        "rate",
        "events/s",
        (
            Contender(HEADWATER, Program(f"{FOLDER}.headwater_pattern", sizes), REPEATS, quick=quick, peer=False),
            Contender(FLINK_SQL, Program(f"{FOLDER}.flink_sql", sizes, FLINK), REPEATS, quick=quick),
        ),
        columns=(
            ("records", "events"),
            ("seconds", "seconds"),
            ("outputs", "matches"),
            ("cpu_us", "µs of processor time per event"),
        ),
    )


def _memory() -> Case:
    def run(name: str, records: int) -> Contender:
        sizes: dict[str, str | int | float] = {
            "follows": "followed_by",
            "records": records,
            "keys": 2_000,
            "parallelism": PARALLELISM,
        }
        program = Program(f"{FOLDER}.headwater_pattern", sizes, timeout_s=1200, watch_slots=True)
        return Contender(name, program, quick=(("records", 50_000),), peer=False)

    return Case(
        "pattern_memory",
        "Three steps with anything in between, within 10 minutes, 2,000 keys: memory over a long stream",
        "peak_mb",
        "MB in slots, peak",
        (run(HEADWATER, 1_500_000), run(TEN_TIMES, 15_000_000)),
        columns=(("records", "events"), ("rate", "events/s"), ("outputs", "matches")),
    )


def _many_name(patterns: int) -> str:
    return f"headwater, {patterns:,} pattern{'s' * (patterns > 1)}"


def _many() -> Case:
    """One pattern is there to be seen, but is other work: an event completes a third of the matches, as each begins the
    same pattern, whose matches skip what lies within them.
    """

    def run(patterns: int) -> Contender:
        sizes: dict[str, str | int | float] = {"patterns": patterns, "records": 1_000_000, "parallelism": PARALLELISM}
        return Contender(
            _many_name(patterns),
            Program(f"{FOLDER}.dynamic", sizes),
            quick=(("records", 30_000), ("patterns", min(patterns, 200))),
            peer=False,
        )

    return Case(
        "pattern_many",
        "Patterns from a stream, each for another kind of event, 10,000 keys",
        "rate",
        "events/s",
        tuple(map(run, (1, 100, 10_000))),
        columns=(("records", "events"), ("seconds", "seconds"), ("outputs", "matches")),
    )
