"""Descriptions of tables without SQL."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.schema import Schema


class FormatDescriptor:
    """A format and its options: `FormatDescriptor.for_format("csv").option("field-delimiter", ";").build()`"""

    def __init__(self, format: str, options: dict[str, str]) -> None:
        self._format = format
        self._options = options

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        return self._format

    def get_options(self) -> dict[str, str]:
        return dict(self._options)

    class Builder:
        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: str, value: object) -> FormatDescriptor.Builder:
            self._options[key] = _text(value)
            return self

        def build(self) -> FormatDescriptor:
            return FormatDescriptor(self._format, self._options)


class TableDescriptor:
    """A table: connector, options, schema. `TableDescriptor.for_connector("print").schema(...).build()`"""

    def __init__(
        self, schema: Schema | None, options: dict[str, str], partition_keys: tuple[str, ...], comment: str | None
    ) -> None:
        self._schema = schema
        self._options = options
        self._partition_keys = partition_keys
        self._comment = comment

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        return TableDescriptor.Builder({"connector": connector})

    def get_schema(self) -> Schema | None:
        return self._schema

    def get_options(self) -> dict[str, str]:
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        return list(self._partition_keys)

    def get_comment(self) -> str | None:
        return self._comment

    class Builder:
        def __init__(self, options: dict[str, str]) -> None:
            self._schema: Schema | None = None
            self._options = options
            self._partition_keys: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            self._schema = schema
            return self

        def option(self, key: str, value: object) -> TableDescriptor.Builder:
            self._options[key] = _text(value)
            return self

        def format(self, format: str | FormatDescriptor) -> TableDescriptor.Builder:
            if isinstance(format, str):
                self._options["format"] = format
                return self
            self._options["format"] = format.get_format()
            for key, value in format.get_options().items():
                self._options[f"{format.get_format()}.{key}"] = value
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            self._partition_keys = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            return TableDescriptor(self._schema, self._options, self._partition_keys, self._comment)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise SqlError(f"an option is text, a number or a boolean, found {value!r}")
