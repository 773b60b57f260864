"""Keyed count with a store that takes `--delay` seconds for every file that is made durable. 0: the disk as it is.

The delay is put into `os.fsync` of every process of the job, by a `sitecustomize` on their path: a snapshot, a manifest
and a directory entry are made durable by it. Checkpoints are cut at every epoch that has none in flight.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.headwater_job import headwater_environment, throughput
from benchmarks.keyed_count.headwater_job import count_and_sum
from benchmarks.workload import StampDir, arguments, report

SLOW_FSYNC = """
import os, time
_fsync = os.fsync
def fsync(descriptor):
    time.sleep({delay} / 2)  # a file, then its directory
    _fsync(descriptor)
os.fsync = fsync
"""


def main() -> None:
    options = arguments(records=8_000_000, keys=1000, parallelism=2, epoch="1 s", delay=0.0)
    if options.delay and "HEADWATER_SLOW_FSYNC" not in os.environ:
        directory = tempfile.mkdtemp(dir=os.getcwd())
        Path(directory, "sitecustomize.py").write_text(SLOW_FSYNC.format(delay=options.delay))
        environ = os.environ | {
            "HEADWATER_SLOW_FSYNC": "1",
            "PYTHONPATH": os.pathsep.join([directory, *filter(None, sys.path)]),
        }
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.checkpoints.slow_store", *sys.argv[1:]], environ)
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    count_and_sum(env, options.records, options.keys, stamps)
    env.execute("slow_store")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
