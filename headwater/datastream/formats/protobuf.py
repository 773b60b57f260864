"""Protocol buffers: messages as Rows, or as the message objects themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.types import Row, named_row

__all__ = ["ProtobufDeserializationSchema", "ProtobufSerializationSchema"]

Getter: TypeAlias = Callable[[Any], Any]


class _MessageType:
    """A message's class, in a form that can be pickled: its descriptors travel, not the module that protoc made."""

    def __init__(self, files: bytes, name: str) -> None:
        self.files = files
        self.name = name
        pool = descriptor_pool.DescriptorPool()
        try:
            for file in descriptor_pb2.FileDescriptorSet.FromString(files).file:
                pool.Add(file)
            self.descriptor: Descriptor = pool.FindMessageTypeByName(name)
        except (DecodeError, TypeError) as error:
            raise ConfigurationError(f"Protobuf: the descriptors cannot be used: {error}") from None
        except KeyError:
            raise ConfigurationError(f"Protobuf: the descriptors have no message {name!r}") from None
        self.message_class: Any = message_factory.GetMessageClass(self.descriptor)

    @staticmethod
    def of(message_type: Any, descriptor_set: bytes | None) -> _MessageType:
        if isinstance(message_type, str) and descriptor_set is not None:
            return _MessageType(descriptor_set, message_type)
        if not isinstance(message_type, type) or not issubclass(message_type, Message):
            raise ConfigurationError(
                f"Protobuf: expected a message class that protoc made, or a message's full name with a descriptor_set "
                f"(protoc --include_imports --descriptor_set_out), found {message_type!r}"
            )
        generated: Any = message_type
        descriptor = generated.DESCRIPTOR
        files = descriptor_pb2.FileDescriptorSet()
        _add_file(descriptor.file, files, set())
        return _MessageType(files.SerializeToString(), descriptor.full_name)


class ProtobufDeserializationSchema(DeserializationSchema):
    """A Row of one message. Enums are names, maps dicts, repeated fields lists, messages in it Rows.

    A field whose absence can be told (optional, oneof, message) is None if absent; others have their default.
    """

    def __init__(
        self,
        message_type: Any,
        descriptor_set: bytes | None = None,
        ignore_parse_errors: bool = False,
        read_default_values: bool = False,
    ) -> None:
        """:param message_type: a class that protoc made; or the full name of a message in `descriptor_set`.
        :param read_default_values: absent optional fields have their default, not None.
        """
        self._type = _MessageType.of(message_type, descriptor_set)
        self._ignore_parse_errors = ignore_parse_errors
        self._read_default_values = read_default_values
        self._to_row = _row_getter(self._type.descriptor, read_default_values, ())

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self._type.name, self._type.files, self._ignore_parse_errors, self._read_default_values)
        return ProtobufDeserializationSchema, settings

    def deserialize(self, message: bytes) -> Any:
        try:
            return self._to_row(self._type.message_class.FromString(message))
        except DecodeError as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(
                f"Protobuf: {short_repr(message, 200)} cannot be read as {self._type.name}: {error}"
            ) from None


class ProtobufSerializationSchema(SerializationSchema):
    """The bytes of one message: of a Row or a dict with its fields, or of a message object. None is an absent field."""

    insert_only = True

    def __init__(self, message_type: Any, descriptor_set: bytes | None = None) -> None:
        self._type = _MessageType.of(message_type, descriptor_set)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufSerializationSchema, (self._type.name, self._type.files)

    def serialize(self, value: Any) -> bytes:
        try:
            if isinstance(value, Message):
                if value.DESCRIPTOR.full_name != self._type.name:
                    raise ValueError(f"it is a {value.DESCRIPTOR.full_name}")
                return bytes(value.SerializeToString(deterministic=True))
            message = self._type.message_class()
            _fill(message, value)
            return bytes(message.SerializeToString(deterministic=True))
        except (ValueError, TypeError, AttributeError, KeyError, EncodeError) as error:
            raise SerializationError(f"Protobuf: record {short_repr(value)} is no {self._type.name}: {error}") from None


def _add_file(file: Any, files: Any, added: set[str]) -> None:
    """Add a file after those that it imports."""
    if file.name in added:
        return
    added.add(file.name)
    for imported in file.dependencies:
        _add_file(imported, files, added)
    file.CopyToProto(files.file.add())


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _is_repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)  # protobuf 5


def _row_getter(descriptor: Descriptor, defaults: bool, around: tuple[str, ...]) -> Getter:
    if descriptor.full_name in around:
        raise ConfigurationError(
            f"Protobuf: message {descriptor.full_name} contains itself, which Rows of a type cannot"
        )
    inner = (*around, descriptor.full_name)
    names = [field.name for field in descriptor.fields]
    getters = [_field_getter(field, defaults, inner) for field in descriptor.fields]
    return lambda message: named_row([get(message) for get in getters], names)


def _field_getter(field: FieldDescriptor, defaults: bool, around: tuple[str, ...]) -> Getter:
    name = field.name
    if _is_map(field):
        value_of = _value_getter(field.message_type.fields_by_name["value"], defaults, around)
        return lambda message: {key: value_of(value) for key, value in getattr(message, name).items()}
    value_of = _value_getter(field, defaults, around)
    if _is_repeated(field):
        return lambda message: [value_of(value) for value in getattr(message, name)]
    if field.has_presence and not (defaults and field.message_type is None):
        return lambda message: value_of(getattr(message, name)) if message.HasField(name) else None
    return lambda message: value_of(getattr(message, name))


def _value_getter(field: FieldDescriptor, defaults: bool, around: tuple[str, ...]) -> Getter:
    if field.message_type is not None:
        return _row_getter(field.message_type, defaults, around)
    if field.enum_type is not None:
        symbols = {value.number: value.name for value in field.enum_type.values}
        return lambda number: symbols.get(number, number)
    return lambda value: value


def _fill(message: Any, value: Any) -> None:
    fields: Sequence[FieldDescriptor] = message.DESCRIPTOR.fields
    for field, item in _items(value, fields):
        if item is None:
            continue
        try:
            _set(message, field, item)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"field {field.name}: found {type(item).__name__} {short_repr(item, 100)}: {error}"
            ) from None


def _items(value: Any, fields: Sequence[FieldDescriptor]) -> list[tuple[FieldDescriptor, Any]]:
    if isinstance(value, Row) and value.get_field_names():
        value = value.as_dict()
    if isinstance(value, Mapping):
        known = {field.name: field for field in fields}
        if unknown := [name for name in value if name not in known]:
            raise ValueError(f"there is no field {unknown[0]!r}; it has {list(known)}")
        return [(known[name], item) for name, item in value.items()]
    if isinstance(value, str | bytes) or not isinstance(value, Row | Sequence) or len(value) != len(fields):
        raise ValueError(f"found {short_repr(value, 100)}; expected the fields {[field.name for field in fields]}")
    return list(zip(fields, value, strict=True))


def _set(message: Any, field: FieldDescriptor, item: Any) -> None:
    if _is_map(field):
        target = getattr(message, field.name)
        entry = field.message_type.fields_by_name["value"]
        for key, each in item.items():
            if entry.message_type is not None:
                _fill(target[key], each)
            else:
                target[key] = _plain(entry, each)
    elif _is_repeated(field):
        target = getattr(message, field.name)
        for each in item:
            if field.message_type is not None:
                _fill(target.add(), each)
            else:
                target.append(_plain(field, each))
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill(inner, item)
    else:
        setattr(message, field.name, _plain(field, item))


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        symbol = field.enum_type.values_by_name.get(value)
        if symbol is None:
            raise ValueError(f"expected one of {list(field.enum_type.values_by_name)}")
        return symbol.number
    return value
