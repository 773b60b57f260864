"""Opening Delta tables, and the options of their store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.common.errors import ConfigurationError
from headwater.common.optional_library import optional_library
from headwater.datastream.connectors.file_access import local_path, resolved_option

_S3: Final = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "aws_session_token": "token",
    "aws_endpoint_url": "endpoint_url",
}


def library() -> Any:
    return optional_library("deltalake", "delta", "Delta")


def table_uri(path: str) -> str:
    """The table's place, local paths as such."""
    if not isinstance(path, str) or not path:
        raise ConfigurationError(f"Delta: {path!r} is not the place of a table; expected a path or a URL")
    return local_path(path) or path.rstrip("/")


def with_secrets(options: Mapping[str, str]) -> dict[str, str] | None:
    """Options as the library takes them, with the secrets that they refer to."""
    return {key: resolved_option(value, key) for key, value in options.items()} or None


def load(uri: str, options: Mapping[str, str], version: Any = None) -> Any:
    """The table as it is now, or was; None if there is no table."""
    deltalake = library()
    try:
        table = deltalake.DeltaTable(uri, storage_options=with_secrets(options))
        if version is not None:
            table.load_as_version(version)
    except deltalake.exceptions.TableNotFoundError:
        return None
    except deltalake.exceptions.DeltaError as error:
        if version is None:
            raise
        raise ConfigurationError(f"Delta table {uri} has no version {version}: {error}") from None
    return table


def arrow_schema_of(table: Any) -> Any:
    """The table's schema, in types that Parquet files have."""
    import pyarrow

    return pyarrow.schema(table.schema().to_arrow())


def file_options(uri: str, options: Mapping[str, str], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of fsspec for data files: those that were given, or those of the table in fsspec's words."""
    if given is not None:
        return dict(given)
    if not uri.startswith("s3"):
        return {}
    found: dict[str, Any] = {}
    for key, value in options.items():
        name = key.lower()
        if name in _S3:
            found[_S3[name]] = value
        elif name in ("aws_region", "aws_default_region"):
            found["client_kwargs"] = {"region_name": value}
    return found
