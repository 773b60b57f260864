"""What all connectors to servers are tested with: jobs that crash at each step, and output that is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.common import WatermarkStrategy
from headwater.common.connector import Sink, Source
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import CollectingSink, JobCrashed, in_process

NO_EVENT_TIME = WatermarkStrategy.no_watermarks()


def to_sink(sink: Callable[[], Sink], count: int, parallelism: int = 2) -> None:
    """Texts through state into the sink: so that every step of an epoch is there."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    texts = env.from_collection([str(number) for number in range(count)])
    texts.key_by(lambda text: text).reduce(lambda a, b: b).sink_to(sink())
    env.execute("to a sink")


def crashed_on_the_way_to(sink: Callable[[], Sink], count: int, step: str) -> list[str]:
    """Run a job that dies at a step of its fourth epoch, and run it again. Return what must be in the sink."""
    with in_process(epoch_records=max(1, count // 7)) as here:
        here.crash_job(epoch=3, at=step)
        with pytest.raises(JobCrashed):
            to_sink(sink, count)
        to_sink(sink, count)
    return [str(number) for number in range(count)]


def read_all(source: Callable[[], Source], results: CollectingSink) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(source(), NO_EVENT_TIME, "source")
    stream.key_by(lambda text: text).reduce(lambda a, b: b).sink_to(results)
    env.execute("from a source")


def crashed_while_reading(source: Callable[[], Source], step: str, epoch_records: int = 10) -> list[Any]:
    """Run a job over a bounded source that dies at a step of its fourth epoch, and run it again. Return the results."""
    results = CollectingSink()
    with in_process(epoch_records=epoch_records) as here:
        here.crash_job(epoch=3, at=step)
        with pytest.raises(JobCrashed):
            read_all(source, results)
        read_all(source, results)
    return results.results()


def run_once(given: Source | Sink) -> None:
    """A job with it: for what must fail."""
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        if isinstance(given, Sink):
            env.from_collection(["x"]).sink_to(given)
        else:
            env.from_source(given, NO_EVENT_TIME, "source").sink_to(CollectingSink())
        env.execute()
