"""The settings of a table environment."""

from __future__ import annotations

import datetime

from headwater.common.config_options import LOCAL_TIME_ZONE, STATE_TTL
from headwater.common.configuration import Configuration
from headwater.common.errors import SqlError
from headwater.table.sql_dialect import SqlDialect

PYTHON_EXECUTABLE = "python.executable"
GENERATED_CODE_LENGTH = "table.generated-code.max-length"


class TableConfig:
    """A view of the environment's configuration: `t_env.get_config().set("table.local-time-zone", "Asia/Tokyo")`."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    @staticmethod
    def get_default() -> TableConfig:
        """Settings that belong to no environment."""
        return TableConfig(Configuration())

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

    def to_map(self) -> dict[str, str]:
        return self._configuration.to_dict()

    def get_idle_state_retention(self) -> datetime.timedelta:
        return datetime.timedelta(milliseconds=self._configuration.get(STATE_TTL))

    def set_idle_state_retention(self, duration: datetime.timedelta) -> None:
        """`table.exec.state.ttl`. 0: state is kept for ever."""
        self._configuration.set_string(STATE_TTL.key, f"{round(duration.total_seconds() * 1000)} ms")

    def get_sql_dialect(self) -> int:
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: int) -> None:
        if sql_dialect != SqlDialect.DEFAULT:
            raise SqlError("there is one dialect of SQL here, Flink's: SqlDialect.DEFAULT")

    def get_python_executable(self) -> str | None:
        """None if none was set."""
        return self._configuration.get_string(PYTHON_EXECUTABLE, "") or None

    def set_python_executable(self, python_exec: str) -> None:
        self._configuration.set_string(PYTHON_EXECUTABLE, python_exec)

    def get_max_generated_code_length(self) -> int:
        return self._configuration.get_integer(GENERATED_CODE_LENGTH, 4000)

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """No effect: no code of Java is generated."""
        self._configuration.set_string(GENERATED_CODE_LENGTH, str(max_generated_code_length))
