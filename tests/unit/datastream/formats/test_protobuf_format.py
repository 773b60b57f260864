"""Protocol buffers as Rows."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Row
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.formats.protobuf import ProtobufDeserializationSchema, ProtobufSerializationSchema


def field(number: int, name: str, kind: Any, *, repeated: bool = False, of: str = "", optional: bool = False) -> Field:
    label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    made = Field(name=name, number=number, type=kind, label=label, type_name=of or None)
    if optional:
        made.proto3_optional = True
    return made


def order_file() -> Any:
    """order.proto, as protoc would describe it."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.enum_type.add(name="State").value.extend(
        [descriptor_pb2.EnumValueDescriptorProto(name=name, number=i) for i, name in enumerate(["NEW", "PAID"])]
    )
    item = file.message_type.add(name="Item")
    item.field.extend([field(1, "sku", Field.TYPE_STRING), field(2, "count", Field.TYPE_INT32)])
    order = file.message_type.add(name="Order")
    order.field.extend(
        [
            field(1, "id", Field.TYPE_INT64),
            field(2, "note", Field.TYPE_STRING, optional=True),
            field(3, "price", Field.TYPE_DOUBLE),
            field(4, "state", Field.TYPE_ENUM, of=".shop.State"),
            field(5, "blob", Field.TYPE_BYTES),
            field(6, "main", Field.TYPE_MESSAGE, of=".shop.Item"),
            field(7, "items", Field.TYPE_MESSAGE, of=".shop.Item", repeated=True),
            field(8, "tags", Field.TYPE_STRING, repeated=True),
            field(9, "stock", Field.TYPE_MESSAGE, of=".shop.Order.StockEntry", repeated=True),
        ]
    )
    order.field[1].oneof_index = 0
    order.oneof_decl.add(name="_note")
    entry = order.nested_type.add(name="StockEntry")
    entry.field.extend([field(1, "key", Field.TYPE_STRING), field(2, "value", Field.TYPE_MESSAGE, of=".shop.Item")])
    entry.options.map_entry = True
    return file


FILES = descriptor_pb2.FileDescriptorSet(file=[order_file()]).SerializeToString()
POOL = descriptor_pool.DescriptorPool()
POOL.Add(order_file())
Order: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("shop.Order"))

read = ProtobufDeserializationSchema(Order)
write = ProtobufSerializationSchema(Order)

items = st.builds(lambda sku, count: Row(sku=sku, count=count), st.text(), st.integers(-(2**31), 2**31 - 1))
orders = st.builds(
    lambda *values: Row(
        **dict(zip(["id", "note", "price", "state", "blob", "main", "items", "tags", "stock"], values, strict=True))
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.text(),
    st.floats(allow_nan=False),
    st.sampled_from(["NEW", "PAID"]),
    st.binary(),
    st.none() | items,
    st.lists(items, max_size=3),
    st.lists(st.text(), max_size=3),
    st.dictionaries(st.text(max_size=4), items, max_size=3),
)


@given(orders)
def test_a_row_comes_back_as_it_was(order: Row) -> None:
    message = write.serialize(order)
    assert read.deserialize(message) == order
    assert Order.FromString(message).id == order["id"]
    assert write.serialize(Order.FromString(message)) == message


def test_an_empty_message() -> None:
    assert read.deserialize(b"") == Row(
        id=0, note=None, price=0.0, state="NEW", blob=b"", main=None, items=[], tags=[], stock={}
    )
    filled = ProtobufDeserializationSchema(Order, read_default_values=True)
    assert filled.deserialize(b"")["note"] == ""


def test_a_name_and_descriptors_do_as_well_as_a_class() -> None:
    by_name = ProtobufDeserializationSchema("shop.Order", FILES)
    assert by_name.deserialize(write.serialize({"id": 3})) == read.deserialize(write.serialize({"id": 3}))
    assert pickle.loads(pickle.dumps(read)).deserialize(b"\x08\x07")["id"] == 7
    assert pickle.loads(pickle.dumps(write)).serialize({"id": 7}) == b"\x08\x07"


def test_an_enum_of_a_newer_version_is_a_number() -> None:
    assert read.deserialize(b"\x20\x05")["state"] == 5


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"id": "x"}, "field id: found str 'x'"),
        ({"id": 2**63}, "field id: found int"),
        ({"state": "LOST"}, r"field state: found str 'LOST': expected one of \['NEW', 'PAID'\]"),
        ({"main": {"sku": 5}}, "field main: .* field sku: found int 5"),
        ({"nothing": 1}, "there is no field 'nothing'"),
        ((1, 2), "expected the fields"),
        ("text", "expected the fields"),
    ],
)
def test_a_value_that_does_not_fit_is_named(value: Any, said: str) -> None:
    with pytest.raises(SerializationError, match=said):
        write.serialize(value)


def test_damaged_messages() -> None:
    with pytest.raises(SerializationError, match=r"cannot be read as shop\.Order"):
        read.deserialize(b"\x0a\xff")
    assert ProtobufDeserializationSchema(Order, ignore_parse_errors=True).deserialize(b"\x0a\xff") is None


def test_bad_settings() -> None:
    for given_type, files in ((dict, None), ("shop.Order", None)):
        with pytest.raises(ConfigurationError, match="expected a message class"):
            ProtobufDeserializationSchema(given_type, files)
    with pytest.raises(ConfigurationError, match=r"no message 'shop\.Bill'"):
        ProtobufDeserializationSchema("shop.Bill", FILES)
    with pytest.raises(ConfigurationError, match="descriptors cannot be used"):
        ProtobufDeserializationSchema("shop.Order", b"\xff\xff")
