"""Delta and Iceberg behind one face, for tests that hold for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from headwater.common.connector import Sink, Source
from headwater.datastream.connectors.delta import DeltaSink, DeltaSource
from headwater.datastream.connectors.iceberg import IcebergSink, IcebergSource

SCHEMA = pa.schema([("i", pa.int64()), ("text", pa.string())])


class DeltaCase:
    kind = "delta"

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "table")

    def sink(self) -> Any:
        return DeltaSink.for_table(self.path)

    def source(self) -> Any:
        return DeltaSource.for_table(self.path)

    def rows(self) -> list[dict[str, Any]]:
        return DeltaTable(self.path).to_pyarrow_table().to_pylist()

    def append(self, table: pa.Table) -> None:
        write_deltalake(self.path, table, mode="append", schema_mode="merge")

    def delete(self, predicate: str) -> None:
        DeltaTable(self.path).delete(predicate)

    def version(self) -> Any:
        return DeltaTable(self.path).version()

    def commits(self) -> int:
        return sum(1 for entry in DeltaTable(self.path).history() if entry["operation"] == "WRITE")

    def files(self) -> int:
        return len(DeltaTable(self.path).file_uris())

    def at(self, version: Any) -> Source:
        return self.source().at_version(version).build()


class IcebergCase:
    kind = "iceberg"

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{directory}/catalogue.db"
        self.properties = {"type": "sql", "uri": uri, "warehouse": f"file://{directory}/warehouse"}

    def sink(self) -> Any:
        return IcebergSink.for_table("test", "shop.orders", **self.properties)

    def source(self) -> Any:
        return IcebergSource.for_table("test", "shop.orders", **self.properties)

    @property
    def table(self) -> Any:
        return load_catalog("test", **self.properties).load_table("shop.orders")

    def rows(self) -> list[dict[str, Any]]:
        return self.table.scan().to_arrow().to_pylist()

    def append(self, table: pa.Table) -> None:
        found = self.table
        new = [field for field in table.schema if field.name not in found.schema().column_names]
        if new:
            with found.update_schema() as update:
                update.union_by_name(pa.schema(new))
        found.append(table)

    def delete(self, predicate: str) -> None:
        self.table.delete(predicate)

    def version(self) -> Any:
        return self.table.current_snapshot().snapshot_id

    def commits(self) -> int:
        return len(self.table.snapshots())

    def files(self) -> int:
        return len(list(self.table.scan().plan_files()))

    def at(self, version: Any) -> Source:
        return self.source().at_snapshot(version).build()


CASES = {"delta": DeltaCase, "iceberg": IcebergCase}


def plain_sink(case: Any) -> Sink:
    return case.sink().set_schema(SCHEMA).build()
