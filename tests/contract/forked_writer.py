"""Writes a snapshot, forks, and lets the child write another one; then reads the child's. In a process of its own.

`python -m tests.contract.forked_writer URL OPTIONS`: a fork takes along whatever a process has, and one that has run
other tests has threads and locks of all kinds.
"""

from __future__ import annotations

import json
import multiprocessing
import sys

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import read_sections, write_snapshot
from headwater.checkpoint.storage.base import StorageSpec
from tests.contract.test_checkpoint_storage import HEADER, sections


def main() -> None:
    layout = CheckpointLayout(StorageSpec(sys.argv[1], json.loads(sys.argv[2])))
    layout.create()
    path = layout.new_snapshot(1, 0, 1, "parent", "full")
    write_snapshot(path, HEADER, sections())  # connections are open now, and a thread of fsspec's runs
    content = sections()
    child = layout.new_snapshot(1, 0, 1, "child", "full")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=lambda: queue.put(write_snapshot(child, HEADER, content)))
    process.start()
    ref = queue.get(timeout=60)
    process.join()
    assert list(read_sections(child, ref)) == content


if __name__ == "__main__":
    main()
