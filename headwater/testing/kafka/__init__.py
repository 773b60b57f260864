"""A Kafka broker for tests, in this process: topics, idempotent producers, transactions, group offsets, faults."""

from headwater.testing.kafka.broker import KafkaBroker
from headwater.testing.kafka.requests import Api

__all__ = ["Api", "KafkaBroker"]
