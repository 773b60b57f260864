"""Settings with which a table environment is made."""

from __future__ import annotations

from headwater.common.configuration import Configuration
from headwater.table.catalog.manager import DEFAULT_CATALOG, DEFAULT_DATABASE


class EnvironmentSettings:
    """Mode, built-in catalog and configuration of a `TableEnvironment`."""

    class Builder:
        """`EnvironmentSettings.new_instance().in_batch_mode().build()`"""

        def __init__(self) -> None:
            self._streaming = True
            self._catalog = DEFAULT_CATALOG
            self._database = DEFAULT_DATABASE
            self._configuration = Configuration()

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            self._streaming = False
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            self._streaming = True
            return self

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            self._configuration.add_all(config)
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            self._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            self._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            return EnvironmentSettings(self._streaming, self._catalog, self._database, self._configuration)

    def __init__(self, streaming: bool, catalog: str, database: str, configuration: Configuration) -> None:
        self._streaming = streaming
        self._catalog = catalog
        self._database = database
        self._configuration = configuration

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        return EnvironmentSettings.Builder().in_batch_mode().build()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        return EnvironmentSettings.Builder().in_streaming_mode().build()

    def is_streaming_mode(self) -> bool:
        return self._streaming

    def get_built_in_catalog_name(self) -> str:
        return self._catalog

    def get_built_in_database_name(self) -> str:
        return self._database

    def get_configuration(self) -> Configuration:
        return self._configuration
