"""The description of a catalog, for `TableEnvironment.create_catalog`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.common.configuration import Configuration


@dataclass(frozen=True)
class CatalogDescriptor:
    """Its name and options; the option `type` says what kind it is."""

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        return CatalogDescriptor(catalog_name, configuration, comment)
