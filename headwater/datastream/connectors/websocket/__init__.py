"""A WebSocket as a source. Needs `headwater[websocket]`."""

from headwater.datastream.connectors.websocket.source import WebSocketSource, WebSocketSourceBuilder

__all__ = ["WebSocketSource", "WebSocketSourceBuilder"]
