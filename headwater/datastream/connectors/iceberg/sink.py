"""The sink, its builder and its committer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.common.connector import Committer
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.file_access import local_path
from headwater.datastream.connectors.file_store import file_store
from headwater.datastream.connectors.iceberg.table import (
    TableName,
    arrow_schema_of,
    file_options,
    library,
    place,
    required,
    table_name,
)
from headwater.datastream.connectors.lake.committer import CommitSettings, LakeCommitter, OthersWereQuickerError
from headwater.datastream.connectors.lake.settings import LakeSinkBuilder
from headwater.datastream.connectors.lake.sink import LakeSink
from headwater.datastream.connectors.lake.writer import LakeFile, PartitionField, TableLayout

NO_RETRIES: Final = {"commit.retry.num-retries": "0"}


class IcebergSink(LakeSink):
    """Appends records to an Iceberg table, exactly once: a property of the table, set by the commit that adds the
    files, says up to which epoch.

    Built by `IcebergSink.for_table("catalogue", "shop.orders", uri="sqlite:////lake/catalogue.db", …).build()`.
    """

    def __init__(self, name: TableName, layout: TableLayout, settings: CommitSettings) -> None:
        super().__init__(name, layout, settings)
        self._name = name

    @staticmethod
    def for_table(catalog: str, identifier: str, **properties: str) -> IcebergSinkBuilder:
        """:param properties: of the catalogue, as of `pyiceberg.catalog.load_catalog`; those of the name's entry in
        `.pyiceberg.yaml` if there are none. Text may refer to secrets: `${env:NAME}`."""
        return IcebergSinkBuilder(table_name(catalog, identifier, properties))

    def create_committer(self) -> Committer:
        return _IcebergCommitter(self._name, self.layout, self.settings)


class IcebergSinkBuilder(LakeSinkBuilder):
    """Settings of an `IcebergSink`."""

    kind = "Iceberg"

    def __init__(self, name: TableName) -> None:
        super().__init__()
        self._name = name
        self._file_options: dict[str, Any] | None = None

    def set_file_options(self, options: Mapping[str, Any]) -> IcebergSinkBuilder:
        """Options of the fsspec file system that data files are written through; for S3 they follow from the
        catalogue's."""
        self._file_options = dict(options)
        return self

    def build(self) -> IcebergSink:
        """Look at the table, and create it if it is not there."""
        table = self._name.load()
        if table is None:
            table = self._created()
        present = arrow_schema_of(table.schema())
        self._check_columns(str(self._name), present)
        partition_by = tuple(self._field(table, each) for each in table.spec().fields)
        if self._partition_by is not None and self._partition_by != tuple(each.column for each in partition_by):
            raise ConfigurationError(
                f"Iceberg table {self._name} is partitioned by {table.spec()}, not by {list(self._partition_by)}"
            )
        data = f"{place(table.location())}/data"
        options = file_options(self._name.properties, self._file_options)
        schema = present if self._schema is None else self._schema
        layout = TableLayout(
            "Iceberg",
            file_store(data, options if local_path(data) is None else None),
            _without_ids(schema),
            partition_by,
            target_file_bytes=self._target,
            compression=self._compression,
        )
        return IcebergSink(self._name, layout, self._commits)

    def _created(self) -> Any:
        if self._schema is None:
            raise ConfigurationError(f"there is no Iceberg table {self._name}; call set_schema(...) to create it")
        unknown = [name for name in self._partition_by or () if name not in self._schema.names]
        if unknown:
            raise ConfigurationError(f"Iceberg: partition column {unknown[0]!r} is not in {self._schema.names}")
        catalog = self._name.load_catalog()
        catalog.create_namespace_if_not_exists(self._name.identifier.rpartition(".")[0])
        table = catalog.create_table_if_not_exists(self._name.identifier, self._schema)
        if self._partition_by and not table.spec().fields:
            with table.update_spec() as update:
                for column in self._partition_by:
                    update.add_identity(column)
        return required(self._name)

    def _field(self, table: Any, spec: Any) -> PartitionField:
        column = table.schema().find_column_name(spec.source_id)
        transform = str(spec.transform)
        if transform == "identity":
            return PartitionField(column)
        if transform in _TIMES:
            return PartitionField(column, _Floor(transform))
        raise ConfigurationError(
            f"Iceberg table {self._name} is partitioned by {transform}({column}); files can be added to partitions by "
            "identity, year, month, day and hour"
        )


_TIMES: Final = ("year", "month", "day", "hour")


class _Floor:
    """Where a time's year, month, day or hour begins: the same for all times of one partition. Pickled to the tasks."""

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def __call__(self, column: Any) -> Any:
        from pyarrow import compute

        return compute.floor_temporal(column, unit=self._unit)


def _without_ids(schema: Any) -> Any:
    """The table may get a column of that name later, with an id that is not known yet: files are matched by names."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(each.name, each.type, each.nullable) for each in schema])


class _IcebergCommitter(LakeCommitter):
    def __init__(self, name: TableName, layout: TableLayout, settings: CommitSettings) -> None:
        super().__init__(layout, settings)
        self._name = name
        self._table: Any = None

    def present_schema(self) -> Any:
        return arrow_schema_of(required(self._name).schema())

    def add_columns(self, fields: Sequence[Any]) -> None:
        import pyarrow

        table = required(self._name)
        with table.update_schema() as update:
            update.union_by_name(pyarrow.schema(fields))
        mapping = {"schema.name-mapping.default": table.schema().name_mapping.model_dump_json()}
        with table.transaction() as transaction:
            transaction.set_properties(**mapping)

    def read_mark(self, mark: str) -> int | None:
        table, self._table = self._table, None
        # A catalogue is dear to open. One that fails is opened anew: its credentials may have changed.
        self._table = required(self._name) if table is None else table.refresh()
        found = self._table.properties.get(mark)
        return None if found is None else int(found)

    def append(self, files: Sequence[LakeFile], mark: str, epoch: int) -> None:
        exceptions = library("pyiceberg.exceptions")
        # Only in memory: the library must not try again by itself, because it would not look at the mark.
        self._table.metadata.properties.update(NO_RETRIES)
        base = f"{self._table.location()}/data"
        try:
            with self._table.transaction() as transaction:
                transaction.set_properties({mark: str(epoch)})
                transaction.add_files(
                    [f"{base}/{file.path}" for file in files],
                    snapshot_properties={"headwater.mark": mark, "headwater.epoch": str(epoch)},
                    check_duplicate_files=False,
                )
        except exceptions.CommitFailedException as error:
            raise OthersWereQuickerError(str(error)) from error
