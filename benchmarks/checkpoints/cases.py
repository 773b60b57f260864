"""The cases and promises of checkpoints, recovery and RocksDB state."""

from __future__ import annotations

from benchmarks.case import HEADWATER, PARALLELISM, SPARK_NATIVE, Case, Contender, Lookup, Target
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

FAST, SLOW = "store at hand", "store that takes 2 s per write"
HEADWATER_ROCKSDB = "headwater, RocksDB"
PYFLINK_ROCKSDB = "PyFlink, RocksDB"


def checkpoint_cases() -> tuple[Case, ...]:
    """In the order in which they run."""
    store = {"records": 12_000_000, "keys": 1000, "parallelism": PARALLELISM, "epoch": "1 s"}
    recovery = {"keys": 1_000_000, "parallelism": PARALLELISM}
    quick = (("records", 300_000),)
    module = "benchmarks.checkpoints.slow_store"
    return (
        Case(
            "slow_store",
            "Keyed count, 1,000 keys, while every write of a checkpoint takes 2 s",
            "rate",
            "records/s",
            (
                Contender(FAST, Program(module, {**store, "delay": 0.0}), repeats=2, quick=quick, peer=False),
                Contender(SLOW, Program(module, {**store, "delay": 2.0}), repeats=2, quick=quick, peer=False),
            ),
            (("records", "records"), ("seconds", "seconds"), ("commits", "checkpoints")),
        ),
        Case(
            "recovery",
            "1,000,000 keys: a slot killed, and rescaled 2 → 3 → 2",
            "recovery_s",
            "s, recovery",
            (
                Contender(
                    HEADWATER,
                    Program("benchmarks.checkpoints.recovery", recovery),
                    quick=(("keys", 10_000),),
                    peer=False,
                ),
            ),
            (
                ("rescale_2_3_s", "s, rescale 2 → 3"),
                ("rescale_3_2_s", "s, rescale 3 → 2"),
                ("keys", "keys"),
                ("epoch_s", "s, epoch"),
            ),
        ),
    )


def rocksdb_contenders(keys: int) -> tuple[Contender, ...]:
    """Beside those of the keyed count with a million keys."""
    ours = {"keys": keys, "records": 4_000_000, "parallelism": PARALLELISM, "backend": "rocksdb"}
    flink = {"keys": keys, "records": 30_000, "parallelism": PARALLELISM, "backend": "rocksdb"}
    return (
        Contender(
            HEADWATER_ROCKSDB,
            Program("benchmarks.keyed_count.headwater_job", ours),
            quick=(("records", 200_000),),
            peer=False,
        ),
        Contender(
            PYFLINK_ROCKSDB, Program("benchmarks.keyed_count.pyflink_job", flink, FLINK), quick=(("records", 10_000),)
        ),
    )


def checkpoint_targets() -> tuple[Target, ...]:
    def rate(look: Lookup, case: str, contender: str) -> float:
        return look(case, contender, "rate")

    return (
        Target(
            "slow_store",
            "cost of a store that takes 2 s per write",
            lambda look: rate(look, "slow_store", FAST) / rate(look, "slow_store", SLOW) - 1,
            0.15,
            at_least=False,
            shown_as="{:.0%}",
        ),
        Target(
            "recovery",
            "recovery of a slot / (1 s + 1 s per million keys)",
            lambda look: look("recovery", HEADWATER, "recovery_share"),
            1.0,
            at_least=False,
        ),
        Target(
            "keyed_count_1m",
            "headwater with RocksDB / Spark native aggregate with RocksDB, 1 M keys",
            lambda look: rate(look, "keyed_count_1m", HEADWATER_ROCKSDB) / rate(look, "keyed_count_1m", SPARK_NATIVE),
            3.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
        Target(
            "keyed_count_1m",
            "headwater with RocksDB / PyFlink with RocksDB, 1 M keys",
            lambda look: (
                rate(look, "keyed_count_1m", HEADWATER_ROCKSDB) / rate(look, "keyed_count_1m", PYFLINK_ROCKSDB)
            ),
            10.0,
            at_least=True,
            shown_as="{:.1f} x",
        ),
    )
