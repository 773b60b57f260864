"""How tests run jobs on the one Spark of the test run, and how they make sure that nothing of them stays behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from headwater.common import Configuration, JobClient
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.runtime.slot.process import PROCESS_NAME
from tests.waiting import wait_until

Build = Callable[[StreamExecutionEnvironment], DataStream]


def epochs_of(records: int) -> dict[str, Any]:
    """Settings for epochs of exactly so many records per source, as long as there are that many."""
    return {"headwater.epoch.min-records": records, "headwater.epoch.max-records": records}


def environment(parallelism: int, checkpoint_dir: Path, conf: dict[str, Any]) -> StreamExecutionEnvironment:
    """An environment whose jobs run small, retry quickly and keep their checkpoints in `checkpoint_dir`."""
    settings = {
        "headwater.master": "local[2]",
        "execution.checkpointing.dir": str(checkpoint_dir),
        "restart-strategy.fixed-delay.delay": 50,
        **conf,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return env.set_parallelism(parallelism)


class JobRunner:
    """Builds and runs jobs, each on a checkpoint directory of its own unless one is given."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0

    def checkpoint_dir(self) -> Path:
        """A directory that no job has used yet."""
        self._number += 1
        return self._directory / f"checkpoints-{self._number}"

    def environment(
        self, parallelism: int = 1, checkpoint_dir: Path | None = None, **conf: Any
    ) -> StreamExecutionEnvironment:
        return environment(parallelism, checkpoint_dir or self.checkpoint_dir(), conf)

    def __call__(
        self, build: Build, parallelism: int = 1, checkpoint_dir: Path | None = None, **conf: Any
    ) -> list[Any]:
        """All that the stream of `build` gives."""
        env = self.environment(parallelism, checkpoint_dir, **conf)
        with build(env).execute_and_collect() as results:
            return list(results)


def progress(client: JobClient) -> dict[str, Any]:
    """The job's numbers."""
    found: dict[str, Any] = client.progress()
    return found


def wait_for_epoch(client: JobClient, epoch: int, seconds: float = 100) -> dict[str, Any]:
    """The job's numbers once it has completed `epoch`; an error if it ends before."""

    def reached() -> bool:
        ended = client.get_job_execution_result().done()
        if progress(client)["epoch"] >= epoch:
            return True
        if ended:
            client.get_job_execution_result().result()
            raise AssertionError(f"the job ended before epoch {epoch}")
        return False

    wait_until(reached, f"epoch {epoch}", seconds)
    return progress(client)


def slots_alive() -> list[psutil.Process]:
    """All slots that jobs of this test run have left. Not known by pids: these come again."""
    mark = os.environ["XDG_STATE_HOME"]  # each test run has its own, and slots inherit it
    found = []
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] != PROCESS_NAME or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get("XDG_STATE_HOME") == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def assert_no_slots_left() -> None:
    """A slot ends when its job does. It is told so and needs a moment; one to which nobody came waits ten seconds."""
    try:
        wait_until(lambda: not slots_alive(), "slots to end", seconds=45)
    except AssertionError:
        raise AssertionError(f"slots {slots_alive()} outlived their jobs") from None
