from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.testing.kafka import KafkaBroker


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker({"in": 2, "out": 3}) as broker:
        yield broker
