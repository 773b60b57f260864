"""The job that the dashboard's tests look at: the demo's, and a window; in this process, without an end."""

from __future__ import annotations

from pathlib import Path

from headwater.common import Configuration
from headwater.common.time import Time
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.demo.card_watch import CardWatch
from headwater.demo.payments import payment
from headwater.runtime.job.handle import LocalJobClient
from headwater.testing import CollectingSink

FAR_AWAY_MS = 4_000_000_000_000
HOT_CARD = 42
"""The key of every other payment."""


def _configuration(folder: Path, name: str) -> Configuration:
    return Configuration.from_dict(
        {
            "headwater.master": "in-process",
            "headwater.state.dir": str(folder / "state"),
            "execution.checkpointing.dir": str(folder / name),
            "execution.checkpointing.savepoint-dir": str(folder / "savepoints"),
            "headwater.epoch.duration": "100 ms",
            "headwater.epoch.min-records": "10",
        }
    )


def start_silent(folder: Path) -> LocalJobClient:
    """Start a job whose filter lets nothing pass."""
    env = StreamExecutionEnvironment.get_execution_environment(_configuration(folder, "silent"))
    numbers = env.from_source(
        DataGeneratorSource(int, None, rate_per_second=100), WatermarkStrategy.no_watermarks(), "n"
    )
    none = numbers.filter(lambda each: each < 0).name("only negative ones").uid("negative")
    none.sink_to(CollectingSink(str(folder / "silent-out"))).name("nobody").uid("nobody")
    client = env.execute_async("silent")
    assert isinstance(client, LocalJobClient)
    return client


def start_payments(folder: Path, name: str = "card payments") -> LocalJobClient:
    env = StreamExecutionEnvironment.get_execution_environment(_configuration(folder, name))
    env.set_parallelism(2)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda each, _: each.time_ms)
    payments = env.from_source(DataGeneratorSource(payment, None, rate_per_second=4_000), times, "payments").uid(
        "payments"
    )
    alerts = payments.key_by(lambda each: each.card % 500 if each.card % 2 else HOT_CARD).process(
        CardWatch(FAR_AWAY_MS)
    )
    alerts.name("card watch").uid("card-watch").sink_to(CollectingSink(str(folder / f"{name}-alerts"))).name("alerts")
    (
        payments.map(lambda each: (each.card % 20, each.cents))
        .name("shop and amount")
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
        .name("revenue per shop")
        .uid("revenue")
        .sink_to(CollectingSink(str(folder / f"{name}-revenue")))
        .name("revenue")
    )
    client = env.execute_async(name)
    assert isinstance(client, LocalJobClient)
    return client
