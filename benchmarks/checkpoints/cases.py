"""The cases and promises of checkpoints, recovery and RocksDB state."""

from __future__ import annotations

from benchmarks.case import HEADWATER, PARALLELISM, SPARK_NATIVE, Case, Contender, Lookup, Target, paired
from benchmarks.harness.environments import FLINK
from benchmarks.harness.process import Program

FAST, SLOW = "store at hand", "store that takes 2 s per write"
HEADWATER_ROCKSDB = "headwater, RocksDB"
PYFLINK_ROCKSDB = "PyFlink, RocksDB"
PYFLINK_RESTARTED = "PyFlink, stopped with a savepoint and started from it"

PYFLINK_KEYS = 25_000
"""As many as PyFlink takes in within a minute or so: each costs a round trip to the JVM."""
HEADWATER_FEW_KEYS = f"headwater, {PYFLINK_KEYS:,} keys"


def checkpoint_cases() -> tuple[Case, ...]:
    """In the order in which they run."""
    store = {"records": 30_000_000, "keys": 1000, "parallelism": PARALLELISM, "epoch": "1 s"}
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
        _recovery(),
        _delta_size(),
    )


def _recovery() -> Case:
    def ours(name: str, keys: int) -> Contender:
        program = Program("benchmarks.checkpoints.recovery", {"keys": keys, "parallelism": PARALLELISM})
        return Contender(name, program, quick=(("keys", 10_000),), peer=False)

    flink = {"keys": PYFLINK_KEYS, "parallelism": PARALLELISM}
    return Case(
        "recovery",
        "Rescaled 2 → 3 → 2, and a slot killed: 1,000,000 keys, and as many as fit into PyFlink in a minute or so",
        "rescale_2_3_s",
        "s, rescale 2 → 3",
        (
            ours(HEADWATER, 1_000_000),
            ours(HEADWATER_FEW_KEYS, PYFLINK_KEYS),
            Contender(
                PYFLINK_RESTARTED,
                Program("benchmarks.checkpoints.pyflink_rescale", flink, FLINK),
                quick=(("keys", 500),),
            ),
        ),
        (
            ("rescale_3_2_s", "s, rescale 3 → 2"),
            ("still_2_3_s", "s, stood still 2 → 3"),
            ("still_3_2_s", "s, stood still 3 → 2"),
            ("keys", "keys"),
            ("recovery_s", "s, recovery of a slot"),
            ("epoch_s", "s, epoch"),
        ),
    )


def _delta_size() -> Case:
    def run(name: str, backend: str) -> Contender:
        program = Program(
            "benchmarks.checkpoints.delta_size", {"keys": 1_000_000, "parallelism": PARALLELISM, "backend": backend}
        )
        return Contender(name, program, quick=(("keys", 20_000), ("checkpoints", 3)), peer=False)

    return Case(
        "delta_size",
        "1,000,000 keys of which 1 % change: the size of a checkpoint",
        "delta_mb",
        "MB, delta",
        (run(HEADWATER, "hashmap"), run(HEADWATER_ROCKSDB, "rocksdb")),
        (
            ("full_mb", "MB, full snapshot"),
            ("percent", "%, delta of full"),
            ("largest_percent", "%, largest delta of full"),
            ("keys", "keys"),
            ("changed", "keys changed"),
        ),
    )


def rocksdb_contenders(keys: int) -> tuple[Contender, ...]:
    """Beside those of the keyed count with a million keys."""
    ours = {"keys": keys, "records": 8_000_000, "parallelism": PARALLELISM, "backend": "rocksdb"}
    flink = {"keys": keys, "records": 12_000, "parallelism": PARALLELISM, "backend": "rocksdb"}
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
            lambda look: paired(look, "slow_store", FAST, SLOW) - 1,
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
        *(
            Target(
                "delta_size",
                f"1 % of 1 M keys changed{backend}: delta / full snapshot",
                lambda look, contender=contender: look("delta_size", contender, "percent") / 100,
                0.03,
                at_least=False,
                shown_as="{:.1%}",
            )
            for contender, backend in ((HEADWATER, ""), (HEADWATER_ROCKSDB, ", RocksDB"))
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
