"""PyFlink, process mode, hashmap state: a savepoint at parallelism 2, started from it at 3, and the same back to 2.

`rescale_*_s` is from the request to stop to the first record that the keyed function of the restored job has processed,
its state read. The JVM is up all the time; the mini cluster and the Python workers are each job's own, as Flink has it.

Three things favour it: nothing is under way when a stop is asked for, the records for the restored job are there before
it starts, and its bundles end after 20 ms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from pyflink.common import Duration, JobClient, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway

from benchmarks.case import LARGE_BUNDLE
from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import StampDir, arguments, report

NUMBERS, SAVEPOINTS = Path("numbers"), Path("savepoints")

PROBES = 100
"""Records after those that fill the state. They read what is there."""


class CountAndSum(KeyedProcessFunction):
    """Stamps `job` at its first probe."""

    def __init__(self, keys: int, job: str, stamps: StampDir) -> None:
        self.keys = keys
        self.job = job
        self.stamps = stamps
        self.seen = False

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("totals", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.totals = runtime_context.get_state(descriptor)

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        number = int(value)
        if number < self.keys:
            self.totals.update((1, number))  # a read would cost another round trip to the JVM
            return
        count, total = self.totals.value() or (0, 0)
        self.totals.update((count + 1, total + number))
        if not self.seen:
            self.seen = True
            self.stamps.stamp(self.job, count=count)
        yield from ()


class Jobs:
    """One job after another, each from the savepoint of the one before."""

    def __init__(self, keys: int, stamps: StampDir) -> None:
        self._keys = keys
        self._stamps = stamps
        self._written = 0

    def start(self, name: str, parallelism: int, savepoint: str = "") -> JobClient:
        """Start at `parallelism`, empty or from `savepoint`, with records to read."""
        self._write(name, PROBES if savepoint else self._keys + PROBES)
        settings = {
            "state.backend.type": "hashmap",
            **({"execution.state-recovery.path": savepoint} if savepoint else {}),
            **({"python.fn-execution.bundle.time": "20"} if savepoint else larger_bundles(LARGE_BUNDLE)),
        }
        env = flink_environment(parallelism, settings)
        files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), NUMBERS.resolve().as_uri())
        source = files.monitor_continuously(Duration.of_millis(100)).build()
        keys = self._keys
        (
            env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
            .uid("numbers")
            .set_parallelism(1)  # probes must not overtake
            .key_by(lambda line: int(line) % keys, key_type=Types.LONG())
            .process(CountAndSum(keys, name, self._stamps), output_type=Types.STRING())
            .uid("totals")
            .sink_to(discarding_sink())
        )
        return env.execute_async(name)

    def first_probe(self, name: str, client: JobClient, partitions: int) -> float:
        """When the job had processed its first probe, in wall-clock seconds. Waits until all partitions have one.

        All that the job is filled with is read then, and a savepoint can be asked for: that fails before all run.
        """
        while len(seen := self._stamps.read(name)) < partitions:
            if client.get_job_status().result().name in ("FAILED", "CANCELED", "FINISHED"):
                client.get_job_execution_result().result()  # raises what it failed with
            time.sleep(0.05)
        if any(stamp["count"] < 1 for stamp in seen):
            raise RuntimeError(f"{name}: a probe found no state; expected that of its key")
        return float(seen[0]["at"])

    def _write(self, name: str, count: int) -> None:
        NUMBERS.mkdir(exist_ok=True)
        hidden = NUMBERS / f".{name}"
        hidden.write_text("".join(f"{i}\n" for i in range(self._written, self._written + count)))
        self._written += count
        os.rename(hidden, NUMBERS / name)


def stop_with_savepoint(client: JobClient) -> str:
    """The savepoint's path. PyFlink 2.3's own `stop_with_savepoint` calls a Java method that is gone."""
    form = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
    return str(client._j_job_client.stopWithSavepoint(False, SAVEPOINTS.resolve().as_uri(), form).get())


def main() -> None:
    options = arguments(keys=50_000, parallelism=2)
    jobs = Jobs(options.keys, StampDir(options.stamps))
    asked = time.time()
    client = jobs.start("fill", options.parallelism)
    facts = {"fill_s": jobs.first_probe("fill", client, options.parallelism) - asked}
    # The first stop waits until the last large bundle is in the state: it is not counted.
    for name, more in (("restart", 0), ("rescale_2_3", 1), ("rescale_3_2", 0)):
        asked = time.time()
        savepoint = stop_with_savepoint(client)
        facts[f"{name}_savepoint_s"] = time.time() - asked
        parallelism = options.parallelism + more
        client = jobs.start(name, parallelism, savepoint)
        facts[f"{name}_s"] = jobs.first_probe(name, client, parallelism) - asked
    report(**facts, keys=options.keys)
    client.cancel().result()


if __name__ == "__main__":
    main()
