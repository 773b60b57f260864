"""The settings of a table environment."""

from __future__ import annotations

from headwater.common.config_options import LOCAL_TIME_ZONE
from headwater.common.configuration import Configuration


class TableConfig:
    """A view of the environment's configuration: `t_env.get_config().set("table.local-time-zone", "Asia/Tokyo")`."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def get_configuration(self) -> Configuration:
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        self._configuration.add_all(configuration)

    def set(self, key: str, value: str) -> TableConfig:
        self._configuration.set_string(key, value)
        return self

    def get(self, key: str, default_value: str) -> str:
        return self._configuration.get_string(key, default_value)

    def get_local_timezone(self) -> str:
        return self._configuration.get(LOCAL_TIME_ZONE)

    def set_local_timezone(self, timezone_id: str) -> None:
        self._configuration.set(LOCAL_TIME_ZONE, timezone_id)
