"""JSON messages with a declared type, at the module path where PyFlink has it."""

from headwater.datastream.formats.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
