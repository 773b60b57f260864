"""RabbitMQ as a source and a sink, with the names of pyflink.datastream.connectors.rabbitmq.

Needs `headwater[rabbitmq]`.
"""

from headwater.datastream.connectors.rabbitmq.connection import RMQConnectionConfig
from headwater.datastream.connectors.rabbitmq.sink import RMQSink
from headwater.datastream.connectors.rabbitmq.source import RMQSource

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]
