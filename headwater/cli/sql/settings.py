"""What the client itself is told with SET: how results look, and whether INSERT waits."""

from __future__ import annotations

from headwater.cli.usage import nearest
from headwater.common.errors import SqlError

RESULT_MODE = "sql-client.execution.result-mode"
MAX_ROWS = "sql-client.execution.max-table-result.rows"
DML_SYNC = "table.dml-sync"

MODES = ("tableau", "changelog", "table")

_DEFAULTS = {RESULT_MODE: "tableau", MAX_ROWS: "1000000", DML_SYNC: "false"}


class ClientSettings:
    """The client's own settings. All others belong to the environment."""

    def __init__(self) -> None:
        self._values = dict(_DEFAULTS)

    def owns(self, key: str) -> bool:
        return key in _DEFAULTS or key.startswith("sql-client.")

    def set(self, key: str, value: str) -> None:
        if key not in _DEFAULTS:
            raise SqlError(f"the client has no setting '{key}'{nearest(key, _DEFAULTS)}")
        if key == RESULT_MODE and value.lower() not in MODES:
            raise SqlError(f"'{key}' is one of {', '.join(MODES)}, found '{value}'{nearest(value, MODES)}")
        if key == DML_SYNC and value.lower() not in ("true", "false"):
            raise SqlError(f"'{key}' is true or false, found '{value}'")
        if key == MAX_ROWS and not (value.isdigit() and int(value) > 0):
            raise SqlError(f"'{key}' is a number of rows, found '{value}'")
        self._values[key] = value.lower()

    def reset(self, key: str) -> None:
        self._values[key] = _DEFAULTS[key]

    def reset_all(self) -> None:
        self._values = dict(_DEFAULTS)

    def items(self) -> list[tuple[str, str]]:
        return sorted(self._values.items())

    @property
    def mode(self) -> str:
        return self._values[RESULT_MODE]

    @property
    def max_rows(self) -> int:
        return int(self._values[MAX_ROWS])

    @property
    def waits(self) -> bool:
        return self._values[DML_SYNC] == "true"
