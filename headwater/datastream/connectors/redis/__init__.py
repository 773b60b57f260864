"""Redis: a sink of commands, look-ups, and streams as a source. Needs `headwater[redis]`."""

from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.redis.lookup import RedisLookup
from headwater.datastream.connectors.redis.sink import RedisSink, RedisSinkBuilder
from headwater.datastream.connectors.redis.source import (
    RedisStreamRecord,
    RedisStreamsSource,
    RedisStreamsSourceBuilder,
)

__all__ = [
    "DeliveryGuarantee",
    "RedisLookup",
    "RedisSink",
    "RedisSinkBuilder",
    "RedisStreamRecord",
    "RedisStreamsSource",
    "RedisStreamsSourceBuilder",
]
