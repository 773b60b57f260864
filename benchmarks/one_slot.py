"""Where the time of a slot goes: its work for a keyed count, in one process, without Spark.

    python -m benchmarks.one_slot --keys 500000 --backend rocksdb

Epochs of records at random keys, in pickled chunks as they arrive in a slot; a checkpoint is cut at every fifth epoch.
Prints microseconds of processor time per record, in all and by part. Two slots with half the keys each are what the
keyed count of the benchmark has on two cores.
"""

from __future__ import annotations

import argparse
import pickle
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from headwater.operators.base import OperatorContext
from headwater.operators.functions.plain import KeyedProcessFunction
from headwater.operators.process import KeyedProcessOperator
from headwater.runtime.slot.garbage import GarbageCollection
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.rocksdb.options import RocksDBOptions

T = TypeVar("T")
GROUPS = 128
CHUNK = 10_000
CUT_EVERY = 5
WARM_UP = 5


class CountAndSum(KeyedProcessFunction):
    """As in the keyed count; nothing is emitted."""

    def open(self, runtime_context: Any) -> None:
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals"))

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[Any]:
        count, total = self.totals.value() or (0, 0)
        self.totals.update((count + 1, total + value[1]))
        return iter(())


class Parts:
    """Processor time by part of the work."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def timed(self, part: str, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        started = time.process_time()
        try:
            return work(*arguments, **options)
        finally:
            self.seconds[part] += time.process_time() - started


def run(backend: Any, keys: int, records: int, epochs: int) -> Counter[str]:
    operator = KeyedProcessOperator(lambda record: record[0], CountAndSum())
    operator.setup(OperatorContext("count", "count", 0, 1, GROUPS, keyed_backend=backend), _Nowhere())  # type: ignore[arg-type]
    operator.open()
    garbage, rng, parts = GarbageCollection(), random.Random(1), Parts()
    for epoch in range(WARM_UP + epochs):
        if epoch == WARM_UP:
            parts = Parts()
        chunks = [
            pickle.dumps([(rng.randrange(keys), rng.randrange(1 << 40)) for _ in range(CHUNK)], 5)
            for _ in range(records // CHUNK)
        ]
        garbage.begin_epoch()
        backend.begin_epoch()
        for chunk in chunks:
            values = parts.timed("unpickle", pickle.loads, chunk)
            parts.timed("process", _process, operator, values)
            parts.timed("free", values.clear)
        cut = epoch % CUT_EVERY == CUT_EVERY - 1
        if cut:
            parts.timed("delta", backend.delta_sections)
        parts.timed("commit", backend.commit_epoch, cut=cut)
        if cut:
            parts.timed("commit", backend.checkpoint_completed)
        parts.timed("collect garbage", garbage.epoch_ended)
    return parts.seconds


def _process(operator: KeyedProcessOperator, values: list[Any]) -> None:
    operator.read_ahead(values)
    operator.process_batch(values, None)


class _Nowhere:
    def emit(self, values: list[Any], timestamps: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=500_000)
    parser.add_argument("--records", type=int, default=300_000, help="per epoch")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--backend", choices=("heap", "rocksdb"), default="heap")
    parser.add_argument("--memory", type=int, default=256, help="MiB for RocksDB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rocksdb = RocksDBOptions(options.memory << 20, Path(directory)) if options.backend == "rocksdb" else None
        backend: Any = make_keyed_backend(options.backend, "count", GROUPS, range(GROUPS), rocksdb)
        seconds = run(backend, options.keys, options.records, options.epochs)
        if rocksdb is not None:
            backend.close()
    each = {part: round(spent * 1e6 / options.records / options.epochs, 2) for part, spent in seconds.items()}
    print(f"{sum(each.values()):.2f} us per record: {each}")


if __name__ == "__main__":
    main()
