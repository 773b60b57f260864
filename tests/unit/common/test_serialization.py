from __future__ import annotations

import pickle

import pytest

from headwater.common.errors import ConfigurationError, SerializationError
from headwater.common.serialization import ByteArraySchema, Encoder, RowFieldExtractorSchema, SimpleStringSchema
from headwater.common.types import Row


def test_text_there_and_back() -> None:
    for charset in ("UTF-8", "utf-16", "latin-1"):
        schema = SimpleStringSchema(charset)
        assert schema.deserialize(schema.serialize("né")) == "né"
    with pytest.raises(SerializationError, match="expected str, found int 5"):
        SimpleStringSchema().serialize(5)
    with pytest.raises(SerializationError, match="is not utf-8"):
        SimpleStringSchema().deserialize(b"\xff")
    with pytest.raises(ConfigurationError, match="unknown character set 'utf-9'"):
        SimpleStringSchema("utf-9")


def test_bytes() -> None:
    assert ByteArraySchema().serialize(bytearray(b"a")) == b"a"
    assert ByteArraySchema().deserialize(b"a") == b"a"
    with pytest.raises(SerializationError, match="expected bytes"):
        ByteArraySchema().serialize("a")


def test_a_field_of_a_row() -> None:
    assert RowFieldExtractorSchema(1).serialize(Row(1, b"k")) == b"k"
    for wrong in (Row(1, "k"), Row(1), (1, b"k")):
        with pytest.raises(SerializationError):
            RowFieldExtractorSchema(1).serialize(wrong)
    with pytest.raises(ValueError, match="negative"):
        RowFieldExtractorSchema(-1)


def test_lines_of_a_file() -> None:
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder()))
    assert encoder.encode(Row("é", 1)) == "+I[é, 1]\n".encode()
    assert encoder.encode("plain") == b"plain\n"
