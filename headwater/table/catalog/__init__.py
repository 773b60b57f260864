"""Catalogs: where tables and views are found by name. With the names of pyflink.table.catalog."""

from headwater.table.catalog.catalog import Catalog
from headwater.table.catalog.objects import ObjectPath

__all__ = ["Catalog", "ObjectPath"]
