"""How large a delta is: one small tuple for each of many keys, of which each epoch changes 1 %, no key twice.

`full_mb` is a full snapshot: a rescale, here to one more and back, begins with one. `delta_mb` is what the median
checkpoint after it wrote for each epoch that it holds; as a rule that is one. RocksDB's full snapshot is its files.
"""

from __future__ import annotations

import statistics
from itertools import pairwise

from benchmarks.checkpoints.waiting import wait_until
from benchmarks.headwater_job import CountingSink, headwater_environment
from benchmarks.keyed_count.headwater_job import CountAndSum
from benchmarks.workload import StampDir, arguments, report
from headwater.common import WatermarkStrategy
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.runtime.job.handle import LocalJobClient

MEGABYTE = 1_000_000

SPREAD = 7919
"""A prime: as many successive numbers as there are keys, times this, have a key each."""


def main() -> None:
    options = arguments(keys=1_000_000, parallelism=2, backend="hashmap", checkpoints=10)
    keys, changed = options.keys, options.keys // 100
    env = headwater_environment(
        options,
        **{
            "state.backend.type": options.backend,
            "headwater.epoch.min-records": str(changed),
            "headwater.epoch.max-records": str(changed),
        },
    )
    (
        env.from_source(
            DataGeneratorSource(lambda i: (i * SPREAD % keys, i)), WatermarkStrategy.no_watermarks(), "numbers"
        )
        .key_by(lambda record: record[0])
        .process(CountAndSum())
        .sink_to(CountingSink(StampDir(options.stamps)))
    )
    client = env.execute_async("delta_size")
    assert isinstance(client, LocalJobClient)
    wait_until(client, lambda: client.progress()["records_in"] >= keys)
    client.rescale(options.parallelism + 1).result()
    client.rescale(options.parallelism).result()
    wait_until(client, lambda: len(client.checkpoints()) > options.checkpoints)
    first, *others = client.checkpoints()
    client.cancel().result()
    sizes = [after["delta_bytes"] / (after["epoch"] - before["epoch"]) for before, after in pairwise([first, *others])]
    full = first["delta_bytes"]
    report(
        percent=100 * statistics.median(sizes) / full,
        largest_percent=100 * max(sizes) / full,
        full_mb=full / MEGABYTE,
        delta_mb=statistics.median(sizes) / MEGABYTE,
        keys=keys,
        changed=changed,
        epochs_per_checkpoint=(others[-1]["epoch"] - first["epoch"]) / len(others),
    )


if __name__ == "__main__":
    main()
