"""What an epoch costs that has next to nothing to do: two keyed stages, two records per epoch and partition.

    python -m benchmarks.small_epochs --parallelism 8 --cores 2 --epochs 100

Prints, in milliseconds, the median duration of an epoch as the engine runs it, and processor time per task (an epoch
has three per parallel partition) by process. The first epochs only warm up.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.function_sink import DiscardSink
from headwater.datastream.state import ValueStateDescriptor
from headwater.runtime.spark.epoch_job import SparkEngine

RECORDS = 2
"""Per epoch and split."""
STAGES = 3


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


class Meter:
    """Measures epochs `warm` to `warm + epochs`: their durations, and the processor time of all processes."""

    def __init__(self, warm: int, epochs: int) -> None:
        self._warm, self._epochs = warm, epochs
        self._seen = 0
        self._before: dict[str, float] = {}
        self.durations_ms: list[float] = []
        self.cpu_seconds: dict[str, float] = {}
        self.done = threading.Event()
        run = SparkEngine.run

        def measured(engine: SparkEngine, header: Any, *arguments: Any) -> Any:
            if self._seen == self._warm:
                self._before = processor_seconds(header)
            started = time.perf_counter()
            try:
                return run(engine, header, *arguments)
            finally:
                self._ended((time.perf_counter() - started) * 1000, header)

        SparkEngine.run = measured  # type: ignore[method-assign]

    def _ended(self, milliseconds: float, header: Any) -> None:
        self._seen += 1
        if self._seen > self._warm and not self.done.is_set():
            self.durations_ms.append(milliseconds)
            if self._seen == self._warm + self._epochs:
                after = processor_seconds(header)
                self.cpu_seconds = {name: after[name] - self._before.get(name, 0.0) for name in after}
                self.done.set()


def processor_seconds(header: Any) -> dict[str, float]:
    """{kind of process: seconds used so far} of the driver, all below it, and the job's slots."""
    total: dict[str, float] = {}
    slots = [psutil.Process(address.pid) for address in header.address_book.values()]
    mine = psutil.Process()
    for process in {mine, *mine.children(recursive=True), *slots}:
        try:
            times, kind = process.cpu_times(), _kind(process, mine)
        except psutil.NoSuchProcess:
            continue
        total[kind] = total.get(kind, 0.0) + times.user + times.system
    return total


def _kind(process: psutil.Process, mine: psutil.Process) -> str:
    if process == mine:
        return "driver"
    name = process.name()
    if name == "java":
        return "JVM"
    if name.startswith("headwater-slot"):
        return "slots"
    return "workers" if "pyspark.daemon" in process.cmdline() else "others"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--conf", action="append", default=[], help="key=value, of headwater or Spark")
    options = parser.parse_args()
    meter = Meter(options.warm, options.epochs)
    configuration = Configuration()
    settings = {
        "headwater.master": f"local[{options.cores}]",
        "parallelism.default": str(options.parallelism),
        "headwater.epoch.min-records": "1",
        "headwater.epoch.max-records": str(RECORDS * options.parallelism),
        "headwater.epoch.duration": "20 ms",
        "execution.checkpointing.interval": "10 s",
        **dict(conf.split("=", 1) for conf in options.conf),
    }
    with tempfile.TemporaryDirectory() as directory:
        for key, value in {"execution.checkpointing.dir": directory, **settings}.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        (
            env.from_source(DataGeneratorSource(int), WatermarkStrategy.no_watermarks(), "numbers")
            .key_by(lambda value: value % 1000, key_type=Types.LONG())
            .process(Count(), output_type=Types.LONG())
            .key_by(lambda value: value % 997, key_type=Types.LONG())
            .process(Count(), output_type=Types.LONG())
            .sink_to(DiscardSink())
        )
        client = env.execute_async("small epochs")
        meter.done.wait()
        client.cancel().result()
    tasks = options.epochs * STAGES * options.parallelism
    parts = {name: 1000 * seconds / tasks for name, seconds in sorted(meter.cpu_seconds.items())}
    print(
        f"P={options.parallelism} epoch {statistics.median(meter.durations_ms):.1f} ms, "
        f"CPU per task {sum(parts.values()):.2f} ms: " + ", ".join(f"{k} {v:.2f}" for k, v in parts.items())
    )


if __name__ == "__main__":
    main()
