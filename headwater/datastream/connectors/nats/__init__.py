"""NATS JetStream as a source and a sink. Needs `headwater[nats]`."""

from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.nats.sink import NatsSink, NatsSinkBuilder
from headwater.datastream.connectors.nats.source import NatsRecord, NatsSource, NatsSourceBuilder

__all__ = ["DeliveryGuarantee", "NatsRecord", "NatsSink", "NatsSinkBuilder", "NatsSource", "NatsSourceBuilder"]
