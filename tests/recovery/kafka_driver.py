"""A driver that counts from Kafka to Kafka and kills itself at a step: `kafka_driver.py SERVERS DIRECTORY STEP EPOCHS`.

STEP is one of `headwater.testing.STEPS`, or one of `IN_COMMIT` below. It is killed, with SIGKILL, the EPOCHS-th time
that it gets there. With STEP "none" it runs to the end.
"""

from __future__ import annotations

import sys
from typing import Any

from headwater.common import Configuration, SimpleStringSchema, WatermarkStrategy
from headwater.common.config.values import IN_PROCESS
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource, committer
from tests.recovery.hitting import Hitter
from tests.unit.connectors.kafka import clients

IN_COMMIT = ("before-transaction", "after-send", "after-mark", "after-commit")
"""Steps inside the commit of an epoch's output."""

_CALLS = {
    "begin_transaction": ("before-transaction", None),
    "send_offsets_to_transaction": ("after-send", "after-mark"),
    "commit_transaction": (None, "after-commit"),
}
"""{call of the producer: (step before it, step after it)}"""


class WatchedProducer:
    """A producer whose calls are steps."""

    def __init__(self, producer: Any, hitter: Hitter) -> None:
        self._producer = producer
        self._hitter = hitter

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._producer, name)
        before, after = _CALLS.get(name, (None, None))

        def watched(*arguments: Any, **options: Any) -> Any:
            self._hitter.reached(before)
            if before == "after-send":
                self._producer.flush(30)
            answer = call(*arguments, **options)
            self._hitter.reached(after)
            return answer

        return watched


def main(servers: str, directory: str, step: str, times: int) -> None:
    hitter = Hitter(step, times)
    hitter.watch_epochs()
    make = committer.producer

    def watched(*arguments: Any) -> Any:
        client = make(*arguments)
        client.client = WatchedProducer(client.client, hitter)
        return client

    committer.producer = watched  # type: ignore[assignment]
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(
            {
                "headwater.master": IN_PROCESS,
                "execution.checkpointing.dir": directory,
                "headwater.epoch.min-records": "20",
                "headwater.epoch.max-records": "20",
            }
        )
    )
    env.set_parallelism(2)
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("in").set_group_id("group")
    source = builder.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(SimpleStringSchema())
    stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "kafka")
    counted = stream.map(lambda text: (f"k{int(text) % 7}", 1)).key_by(lambda pair: pair[0])
    counted.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(
        clients.sink(servers)
    )
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
