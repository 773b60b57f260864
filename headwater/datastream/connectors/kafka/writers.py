"""The writer that sends straight to Kafka: at least once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.common.connector import ReusableSinkWriter, WriterContext
from headwater.datastream.connectors.kafka.client import KafkaClient, library, log
from headwater.datastream.connectors.kafka.messages import MessageFormat, send

FLUSH_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 5.0
"""How long a writer that is closed waits for messages that no epoch waits for."""


class DirectWriter(ReusableSinkWriter):
    """Sends messages as they come. With `waits`, an epoch ends when Kafka has them all: at least once."""

    def __init__(
        self, client: KafkaClient, form: MessageFormat, failures: list[tuple[str, Any]], *, waits: bool
    ) -> None:
        self._client = client
        self._format = form
        self._failures = failures
        """(topic, error) of messages that could not be delivered, as the client tells."""
        self._waits = waits

    def begin_epoch(self, context: WriterContext) -> None:
        self._failures.clear()

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        send(self._client, self._format.messages(values, timestamps))
        self._check()

    def prepare_commit(self) -> list[Any]:
        while self._waits and self._client.client.flush(FLUSH_SECONDS):
            self._check()
        self._check()
        return []

    def _check(self) -> None:
        if not self._failures:
            return
        topic, error = self._failures[0]
        what = f"{len(self._failures)} messages could not be delivered to topic '{topic}'"
        problem = self._client.failed(what, library().KafkaException(error))
        if self._waits:
            raise problem
        log.warning("%s; they are lost, as DeliveryGuarantee.NONE allows", problem)
        self._failures.clear()

    def abort(self) -> None:
        """What was sent is there: it comes again. That is what at least once means."""

    def close(self) -> None:
        self._client.client.flush(CLOSE_SECONDS)
