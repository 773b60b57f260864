"""Avro messages whose schemas are in a registry, over HTTP."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import pytest

from headwater.common import Row
from headwater.common.errors import ConfigurationError, ExternalSystemError, SerializationError
from headwater.datastream.formats import schema_registry
from headwater.datastream.formats.avro import (
    AvroSchema,
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)
from headwater.datastream.formats.schema_registry import SchemaRegistryClient, SchemaRegistryError
from tests.unit.datastream.formats.registry_server import Registry, running_registry

V1 = AvroSchema('{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}')
V2 = AvroSchema(
    '{"type":"record","name":"R","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":"string","default":"nobody"}]}'
)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setattr(schema_registry, "_FIRST_PAUSE_SECONDS", 0.001)
    with running_registry() as running:
        yield running


def writer(registry: Registry, schema: AvroSchema, **settings: bool) -> ConfluentRegistryAvroSerializationSchema:
    return ConfluentRegistryAvroSerializationSchema.for_generic("r-value", schema, registry.url, **settings)


def test_messages_of_all_versions_are_read_as_one(registry: Registry) -> None:
    messages = [writer(registry, V1).serialize({"id": 1}), writer(registry, V2).serialize((2, "b"))]
    assert [message[:5] for message in messages] == [b"\0\0\0\0\x64", b"\0\0\0\0\x65"]
    new = ConfluentRegistryAvroDeserializationSchema.for_rows(V2, registry.url)
    assert list(map(new.deserialize, messages)) == [Row(id=1, name="nobody"), Row(id=2, name="b")]
    old = ConfluentRegistryAvroDeserializationSchema.for_generic(V1, registry.url)
    assert list(map(old.deserialize, messages)) == [{"id": 1}, {"id": 2}]
    as_written = ConfluentRegistryAvroDeserializationSchema.for_generic(None, registry.url)
    assert list(map(as_written.deserialize, messages)) == [{"id": 1}, {"id": 2, "name": "b"}]


def test_each_schema_is_asked_for_once(registry: Registry) -> None:
    write = writer(registry, V1)
    messages = [write.serialize({"id": number}) for number in range(10)]
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(V1, registry.url)
    for message in messages:
        read.deserialize(message)
    assert registry.requests == ["POST /subjects/r-value/versions", "GET /schemas/ids/100"]


def test_schemas_that_refer_to_others(registry: Registry) -> None:
    registry.add("money", '{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}')
    text = '{"type":"record","name":"Order","fields":[{"name":"price","type":"Money"}]}'
    schema_id = registry.add("order", text, [{"name": "Money", "subject": "money", "version": 1}])
    read = ConfluentRegistryAvroDeserializationSchema.for_rows(None, registry.url)
    assert read.deserialize(schema_registry.framed(schema_id) + b"\x0e") == Row(price=Row(cents=7))


def test_a_registry_that_stumbles_is_asked_again(registry: Registry) -> None:
    registry.failures = [503, 500, 429]
    assert writer(registry, V1).serialize({"id": 1})[:1] == b"\0"
    registry.failures = [500] * 4
    with pytest.raises(ExternalSystemError, match="HTTP 500 not now"):
        writer(registry, V2).serialize((1, "a"))


def test_a_redirect_is_not_followed_with_the_password(registry: Registry) -> None:
    registry.failures = [302]
    with pytest.raises(SchemaRegistryError, match="HTTP 302"):
        SchemaRegistryClient(registry.url, {"basic.auth.user.info": "me:secret"}).schema(100)


def test_refusals_say_what_and_where(registry: Registry) -> None:
    read = ConfluentRegistryAvroDeserializationSchema.for_generic(V1, registry.url)
    with pytest.raises(SerializationError, match="refused schema 9: HTTP 404 Schema 9 not found"):
        read.deserialize(b"\0\0\0\0\x09\x02")
    with pytest.raises(SerializationError, match="does not begin with the frame of a schema registry"):
        read.deserialize(b'{"id": 1}')
    registry.compatible = False
    with pytest.raises(
        SchemaRegistryError, match="refused subject 'r-value': HTTP 409 Schema being registered is incomp"
    ):
        writer(registry, V1).serialize({"id": 1})
    with pytest.raises(SchemaRegistryError, match="HTTP 404 Schema not found"):
        writer(registry, V1, auto_register=False).serialize({"id": 1})
    with pytest.raises(ExternalSystemError, match=r"does not answer about schema 1: .*refused"):
        SchemaRegistryClient("http://127.0.0.1:1").schema(1)


def test_passwords_work_and_are_not_told(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.password = "me:s3cret@x"
    registry.add("r-value", str(V1))
    in_url = registry.url.replace("http://", "http://me:s3cret%40x@")
    assert SchemaRegistryClient(in_url).schema(100).text == str(V1)
    given = SchemaRegistryClient(registry.url, {"basic.auth.user.info": "me:s3cret@x"})
    assert given.latest("r-value")[0] == 100
    monkeypatch.setenv("REGISTRY_LOGIN", "me:s3cret@x")
    by_name = pickle.dumps(SchemaRegistryClient(registry.url, {"basic.auth.user.info": "${env:REGISTRY_LOGIN}"}))
    assert b"s3cret" not in by_name
    assert pickle.loads(by_name).latest("r-value")[0] == 100
    wrong = SchemaRegistryClient(registry.url.replace("http://", "http://me:s3cret@"))
    with pytest.raises(SchemaRegistryError, match="HTTP 401") as caught:
        wrong.schema(100)
    assert "s3cret" not in str(caught.value) + repr(wrong) + repr(given)
    with pytest.raises(ConfigurationError, match=r"expected a URL") as refused:
        SchemaRegistryClient("ftp://me:s3cret@host")
    assert "s3cret" not in str(refused.value)


def test_settings_are_checked_and_travel(registry: Registry) -> None:
    with pytest.raises(ConfigurationError, match=r"unknown setting 'basic\.auth'"):
        SchemaRegistryClient("http://host", {"basic.auth": "x"})
    with pytest.raises(ConfigurationError, match=r"timeout\.seconds is 'soon'"):
        SchemaRegistryClient("http://host", {"timeout.seconds": "soon"})
    registry.add("r-value", str(V1))
    read = pickle.loads(pickle.dumps(ConfluentRegistryAvroDeserializationSchema.for_rows(V1, registry.url)))
    assert read.deserialize(b"\0\0\0\0\x64\x02") == Row(id=1)
    write = pickle.loads(pickle.dumps(writer(registry, V1, auto_register=False)))
    assert write.serialize(Row(id=1)) == b"\0\0\0\0\x64\x02"
    assert json.loads(registry.schemas[100]["schema"])["name"] == "R"
