"""A PyFlink program with Kafka source and sink, unchanged, on Spark: on both engines, across a kill of its slots."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headwater.common import JobStatus, WatermarkStrategy
from headwater.datastream.connectors.kafka import KafkaOffsetsInitializer
from headwater.testing.kafka import KafkaBroker
from tests.spark.harness import JobRunner, epochs_of
from tests.unit.connectors.kafka import clients
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pyflink.common import SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink, KafkaSource,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
source = KafkaSource.builder() \\
    .set_bootstrap_servers(sys.argv[1]) \\
    .set_topics("in") \\
    .set_group_id("my-group") \\
    .set_starting_offsets(KafkaOffsetsInitializer.earliest()) \\
    .set_bounded(KafkaOffsetsInitializer.latest()) \\
    .set_value_only_deserializer(SimpleStringSchema()) \\
    .build()
sink = KafkaSink.builder() \\
    .set_bootstrap_servers(sys.argv[1]) \\
    .set_record_serializer(
        KafkaRecordSerializationSchema.builder()
            .set_topic("out")
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
    ) \\
    .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE) \\
    .set_transactional_id_prefix("my-job") \\
    .build()
ds = env.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka Source")
ds.map(lambda text: ("k%d" % (int(text) % 7), 1), Types.TUPLE([Types.STRING(), Types.INT()])) \\
    .key_by(lambda pair: pair[0]) \\
    .reduce(lambda a, b: (a[0], a[1] + b[1])) \\
    .map(lambda pair: "%s %d" % pair, Types.STRING()) \\
    .sink_to(sink)
env.execute("kafka to kafka")
"""


def expected(count: int) -> list[str]:
    return sorted(f"k{i % 7} {i // 7 + 1}" for i in range(count))


@pytest.fixture
def broker() -> Any:
    with KafkaBroker({"in": 2, "out": 2}) as broker:
        yield broker


@pytest.mark.spark
def test_a_pyflink_program_runs_unchanged(broker: KafkaBroker, tmp_path: Path) -> None:
    clients.produce(broker.bootstrap_servers, "in", range(500))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = ["-D", f"execution.checkpointing.dir={tmp_path / 'c'}", "-D", "headwater.master=local[2]"]
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli.main", "run", *settings, str(program), broker.bootstrap_servers],
        cwd=ROOT, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert clients.values(broker.bootstrap_servers, "out") == expected(500)
    assert broker.committed("my-group") == {("in", 0): 250, ("in", 1): 250}


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["shuffle", "resident"])
def test_both_engines_read_on_while_slots_die(run_job: JobRunner, broker: KafkaBroker, engine: str) -> None:
    """An unbounded job gets its input in three portions; a slot is killed between them."""
    servers = broker.bootstrap_servers
    env = run_job.environment(2, **{"headwater.epoch.engine": engine}, **epochs_of(100))
    settings = clients.source(servers)
    settings._settings.stopping, settings._settings.bounded = None, False
    source = settings.set_starting_offsets(KafkaOffsetsInitializer.earliest()).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    counted = stream.map(lambda text: (f"k{int(text) % 7}", 1)).key_by(lambda pair: pair[0])
    counted.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(
        clients.sink(servers)
    )
    job = env.execute_async("kafka")
    try:
        for portion in range(3):
            clients.produce(servers, "in", range(portion * 200, portion * 200 + 200))
            done = (portion + 1) * 200
            wait_until(lambda n=done: len(clients.read_all(servers, "out")) >= n, f"{done} results", poll_s=0.2)
            if portion == 0:
                os.kill(job.progress()["slots"][0]["pid"], signal.SIGKILL)
        assert clients.values(servers, "out") == expected(600)
        assert job.get_job_status().result() is JobStatus.RUNNING
    finally:
        job.cancel().result()
