"""MQTT as a source and a sink. Needs `headwater[mqtt]`."""

from headwater.datastream.connectors.mqtt.client import MqttConnection
from headwater.datastream.connectors.mqtt.sink import MqttSink
from headwater.datastream.connectors.mqtt.source import MqttRecord, MqttSource

__all__ = ["MqttConnection", "MqttRecord", "MqttSink", "MqttSource"]
