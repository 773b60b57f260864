"""Output in files, exactly once, and the time at which each file became visible.

The sink is headwater's own: files are synced when an epoch ends, and renamed after its manifest is durable. The time is
taken when the rename is done and synced. Nobody watches the directory: a watcher would add the time in which it wakes.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from headwater.common import Encoder
from headwater.common.connector import Committer
from headwater.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy

TIMES = "times.jsonl"


class TimedFileSink(FileSink):
    """Writes lines to files in `directory`. The driver's committer notes when they became visible, in a hidden file."""

    @staticmethod
    def in_directory(directory: str) -> TimedFileSink:
        sink = (
            FileSink.for_row_format(directory, Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
            .build()
        )
        return TimedFileSink(sink._settings)

    def create_committer(self) -> Committer:
        return _TimedCommitter(super().create_committer(), self._settings.store.base_path)


class _TimedCommitter(Committer):
    def __init__(self, committer: Committer, directory: str) -> None:
        self._committer = committer
        self._directory = directory
        self._times: list[tuple[float, list[str]]] = []

    def commit(self, committables: list[Any]) -> None:
        self._committer.commit(committables)
        self._times.append((time.time(), [each.final_name for each in committables]))

    def find_leftovers(self, job_id: str) -> list[Any]:
        return self._committer.find_leftovers(job_id)

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        self._committer.delete_leftovers(leftovers)

    def close(self) -> None:
        self._committer.close()
        with open(os.path.join(self._directory, f".{TIMES}"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self._times)


def seen_in(directory: str) -> tuple[list[tuple[int, float]], int]:
    """(i, seconds from creation until it was visible) of all records, and the number of commits that had any."""
    seen: list[tuple[int, float]] = []
    commits = 0
    with open(os.path.join(directory, f".{TIMES}"), encoding="utf-8") as times:
        for visible, names in map(json.loads, times):
            commits += bool(names)
            for name in names:
                with open(os.path.join(directory, name), encoding="utf-8") as lines:
                    seen += [(int(i), visible - float(created)) for i, created in map(str.split, lines)]
    return seen, commits
