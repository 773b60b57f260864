"""The cases of this folder."""

from __future__ import annotations

from benchmarks.case import LARGE_BUNDLE, PARALLELISM, PYFLINK, PYFLINK_TUNED, Case, Contender
from benchmarks.harness.environments import FLINK, PROJECT_ENVIRONMENT, Environment
from benchmarks.harness.process import Program

RECORDS, PEER_RECORDS = 2_000_000, 200_000
FROM_FILES = "headwater, files to Redis"
FROM_KAFKA = "headwater, Kafka to Redis"
HALF_OF_MAXIMUM = 35_000
"""Events/s: half of what `FROM_KAFKA` reached when this was set."""

Sizes = dict[str, str | int | float]


def yahoo_cases() -> tuple[Case, ...]:
    return (
        Case(
            "yahoo",
            "The Yahoo streaming benchmark: views per campaign and ten seconds, exactly once to Redis",
            "rate",
            "events/s",
            (
                _contender(FROM_FILES, "headwater_job", {"records": RECORDS, "source": "file"}),
                _contender(FROM_KAFKA, "headwater_job", {"records": RECORDS, "source": "kafka"}),
                _contender(PYFLINK, "pyflink_job", {"records": PEER_RECORDS}, FLINK),
                _contender(PYFLINK_TUNED, "pyflink_job", {"records": PEER_RECORDS, "bundle": LARGE_BUNDLE}, FLINK),
            ),
            columns=(("records", "events"), ("seconds", "seconds")),
        ),
        Case(
            "yahoo_latency",
            f"The same from Kafka at {HALF_OF_MAXIMUM:,} events/s: from the end of a window to its count in Redis",
            "p50",
            "ms",
            (
                Contender(
                    FROM_KAFKA,
                    Program("benchmarks.yahoo.latency_job", {"rate": HALF_OF_MAXIMUM, "parallelism": PARALLELISM}),
                    quick=(("rate", 500), ("seconds", 40), ("warm_up", 5)),
                    peer=False,
                ),
            ),
            columns=(("p99", "p99, ms"), ("counts", "counts")),
        ),
    )


def _contender(name: str, module: str, sizes: Sizes, where: Environment = PROJECT_ENVIRONMENT) -> Contender:
    return Contender(
        name,
        Program(f"benchmarks.yahoo.{module}", {**sizes, "parallelism": PARALLELISM}, where),
        quick=(("records", 20_000),),
        peer=where is not PROJECT_ENVIRONMENT,
    )
