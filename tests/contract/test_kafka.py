"""The contracts of sources and sinks, for Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headwater.testing import SINK_CHECKS, SOURCE_CHECKS, SinkCase, SourceCase
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka import clients


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker({"in": 1, "out": 3}) as broker:
        yield broker


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_source(check: Callable[[SourceCase], None], broker: KafkaBroker) -> None:
    records = [f"r{number}" for number in range(12)]
    clients.produce(broker.bootstrap_servers, "in", records, partitions=1)
    check(SourceCase(lambda: clients.source(broker.bootstrap_servers).build(), records, 1))


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_sink(check: Callable[[SinkCase], None], broker: KafkaBroker) -> None:
    servers = broker.bootstrap_servers
    case = SinkCase(
        clients.sink(servers),
        visible=lambda: clients.values(servers, "out"),
        records=lambda start, stop: [f"k{number % 3} {number}" for number in range(start, stop)],
        whole_epochs=True,
    )
    check(case)
