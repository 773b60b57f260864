"""Catalogs: where tables and views are found by name. With the names of pyflink.table.catalog."""

from headwater.table.catalog.catalog import Catalog
from headwater.table.catalog.descriptor import CatalogDescriptor
from headwater.table.catalog.objects import (
    CatalogBaseTable,
    CatalogDatabase,
    ObjectPath,
    ResolvedSchema,
    UniqueConstraint,
    WatermarkSpec,
)
from headwater.table.catalog.objects import Identifier as ObjectIdentifier
from headwater.table.catalog.objects import TableColumn as Column

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "Column",
    "ObjectIdentifier",
    "ObjectPath",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]
