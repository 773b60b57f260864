"""HTTP: a sink that calls a URL for each record (webhooks), and server-sent events as a source."""

from headwater.datastream.connectors.http.events import ServerSentEvent, SseSource, SseSourceBuilder
from headwater.datastream.connectors.http.sink import HttpSink, HttpSinkBuilder

__all__ = ["HttpSink", "HttpSinkBuilder", "ServerSentEvent", "SseSource", "SseSourceBuilder"]
