"""The case of this folder, with its sizes and promises."""

from __future__ import annotations

from benchmarks.case import LARGE_BUNDLE, PARALLELISM, PYFLINK, PYFLINK_TUNED, Case, Contender, Target, paired
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

RECORDS, PEER_RECORDS = 3_000_000, 200_000
CASE = "kafka"
GENERATOR = "headwater, generator to a counter"
AT_LEAST_ONCE = "headwater, Kafka to Kafka, at least once"
EXACTLY_ONCE = "headwater, Kafka to Kafka, exactly once"


def kafka_cases() -> tuple[Case, ...]:
    return (
        Case(
            CASE,
            "Keyed count, one output per record, from Kafka to Kafka (the test broker, on the same cores)",
            "rate",
            "records/s",
            (
                _contender(GENERATOR, ""),
                _contender(AT_LEAST_ONCE, "AT_LEAST_ONCE"),
                _contender(EXACTLY_ONCE, "EXACTLY_ONCE"),
                _peer(PYFLINK, {}),
                _peer(PYFLINK_TUNED, {"bundle": LARGE_BUNDLE}),
            ),
            columns=(("records", "records"), ("seconds", "seconds")),
        ),
    )


def kafka_targets() -> tuple[Target, ...]:
    return (
        Target(
            CASE,
            "Kafka to Kafka, exactly once / generator to a counter",
            lambda look: paired(look, CASE, EXACTLY_ONCE, GENERATOR),
            0.6,
            at_least=True,
        ),
        Target(
            CASE,
            "Kafka to Kafka, exactly once / at least once",
            lambda look: paired(look, CASE, EXACTLY_ONCE, AT_LEAST_ONCE),
            0.75,
            at_least=True,
        ),
        Target(
            CASE,
            "Kafka to Kafka, exactly once / PyFlink's defaults from a file, without a connector",
            lambda look: look(CASE, EXACTLY_ONCE, "rate") / look(CASE, PYFLINK, "rate"),
            40.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
    )


def _contender(name: str, guarantee: str) -> Contender:
    sizes: dict[str, str | int | float] = {"records": RECORDS, "parallelism": PARALLELISM, "guarantee": guarantee}
    return Contender(
        name,
        Program("benchmarks.kafka.headwater_job", sizes),
        repeats=2,
        quick=(("records", 40_000),),
        peer=False,
    )


def _peer(name: str, own: dict[str, int]) -> Contender:
    """The same records from a file, in the peer's own environment."""
    sizes: dict[str, str | int | float] = {"records": PEER_RECORDS, "parallelism": PARALLELISM, **own}
    return Contender(name, Program("benchmarks.kafka.pyflink_job", sizes, FLINK), quick=(("records", 20_000),))
