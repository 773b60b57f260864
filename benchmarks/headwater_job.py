"""What the headwater programs share: an environment set from the command line, and a sink that counts.

The sink is an ordinary two-phase one. Nothing of it is visible before its epoch's manifest, so the time of a commit is
the time at which results may be seen.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from benchmarks.workload import StampDir
from headwater.common import Configuration
from headwater.common.config_options import OPTIONS
from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.datastream import StreamExecutionEnvironment

ENGINE_KEY = "headwater.epoch.engine"


def headwater_environment(options: Namespace, **settings: str) -> StreamExecutionEnvironment:
    """An environment on `local[parallelism]` with a fresh checkpoint directory, epochs of `--epoch` on `--engine`."""
    configuration = Configuration()
    configuration.set_string("headwater.master", f"local[{options.parallelism}]")
    configuration.set_string("parallelism.default", str(options.parallelism))
    configuration.set_string("execution.checkpointing.dir", tempfile.mkdtemp(dir=os.getcwd()))
    if getattr(options, "epoch", ""):
        configuration.set_string("headwater.epoch.duration", options.epoch)
    if getattr(options, "engine", ""):
        settings |= engine_setting(options.engine)
    for name, value in settings.items():
        configuration.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def engine_setting(engine: str) -> dict[str, str]:
    """The setting that chooses an engine; none where Spark's shuffle is the only one there is."""
    if any(option.key == ENGINE_KEY for option in OPTIONS):
        return {ENGINE_KEY: engine}
    if engine == "resident":
        raise SystemExit(f"this headwater has no setting {ENGINE_KEY}, so it has no resident engine")
    return {}


class CountingSink(Sink):
    """Counts what it is given, and stamps every commit (`commit`, with its count of outputs) and the end (`closed`)."""

    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _CountingWriter()

    def create_committer(self) -> Committer:
        return _CountingCommitter(self.stamps)


class _CountingWriter(SinkWriter):
    def __init__(self) -> None:
        self._count = 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._count += len(values)

    def prepare_commit(self) -> list[Any]:
        count, self._count = self._count, 0
        return [count]

    def abort(self) -> None:
        self._count = 0


class _CountingCommitter(Committer):
    def __init__(self, stamps: StampDir) -> None:
        self._stamps = stamps

    def commit(self, committables: list[Any]) -> None:
        self._stamps.stamp("commit", outputs=sum(committables))

    def close(self) -> None:
        self._stamps.stamp("closed")


def throughput(stamps: StampDir, records: int) -> dict[str, Any]:
    """Records per second from the first `first` stamp (the first task's first record) to the end of the sink.

    The sink is closed after the last commit, and after the slots were told to stop. An epoch without output has no
    commit of its own, so the last `commit` stamp would be too early.
    """
    seconds = stamps.seconds_between("first", "closed")
    commits = stamps.read("commit")
    return {
        "records": records,
        "seconds": seconds,
        "rate": records / seconds,
        "outputs": sum(int(commit["outputs"]) for commit in commits),
        "commits": len(commits),
    }
