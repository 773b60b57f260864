"""Opening Iceberg tables through their catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.file_access import local_path, resolved_option

_S3: Final = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "s3.endpoint": "endpoint_url",
}


def library(module: str = "pyiceberg") -> Any:
    return optional_library(module, "iceberg", "Iceberg")


@dataclass(frozen=True)
class TableName:
    """Where a table is: a catalogue, as pyiceberg knows it, and a name in it. Pickled to the tasks."""

    catalog: str
    identifier: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of the catalogue. They may refer to secrets, and are not shown."""

    def __str__(self) -> str:
        return f"{self.catalog}.{self.identifier}"

    def load_catalog(self) -> Any:
        properties = {key: resolved_option(value, key) for key, value in self.properties.items()}
        return library("pyiceberg.catalog").load_catalog(self.catalog, **properties)

    def load(self) -> Any:
        """The table as it is now; None if there is none."""
        try:
            return self.load_catalog().load_table(self.identifier)
        except library("pyiceberg.exceptions").NoSuchTableError:
            return None


def table_name(catalog: str, identifier: str, properties: Mapping[str, str]) -> TableName:
    library()
    if not isinstance(identifier, str) or "." not in identifier:
        raise ConfigurationError(
            f"Iceberg: table {identifier!r} has no namespace; expected a name such as 'shop.orders'"
        )
    return TableName(catalog, identifier, dict(properties))


def required(name: TableName) -> Any:
    table = name.load()
    if table is None:
        raise ConfigurationError(f"there is no Iceberg table {name}")
    return table


def arrow_schema_of(schema: Any) -> Any:
    """The pyarrow.Schema of an Iceberg schema, with field ids, in the types that Python's values become."""
    arrow = library("pyiceberg.io.pyarrow").schema_to_pyarrow(schema)
    import pyarrow

    return pyarrow.schema([each.with_type(_plain(each.type)) for each in arrow])


def _plain(arrow_type: Any) -> Any:
    """pyiceberg's large texts and lists as plain ones."""
    import pyarrow
    from pyarrow import types

    if types.is_large_string(arrow_type):
        return pyarrow.string()
    if types.is_large_binary(arrow_type):
        return pyarrow.binary()
    if types.is_large_list(arrow_type):
        return pyarrow.list_(arrow_type.value_field.with_type(_plain(arrow_type.value_type)))
    return arrow_type


def file_options(properties: Mapping[str, str], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of fsspec for data files: those that were given, or the catalogue's of S3 in fsspec's words."""
    if given is not None:
        return dict(given)
    found: dict[str, Any] = {_S3[key]: value for key, value in properties.items() if key in _S3}
    if "s3.region" in properties:
        found["client_kwargs"] = {"region_name": properties["s3.region"]}
    return found


def place(location: str) -> str:
    """A location of a table as files are opened here: local ones without their scheme."""
    return local_path(location) or location
