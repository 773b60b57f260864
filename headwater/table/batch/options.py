"""Options of a table (`WITH ('key' = 'value')`). One that its connector or format does not have is an error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from headwater.common.errors import SqlError


class TableOptions:
    """The options of one table. Every one that nobody asked for is an error: see `check`."""

    def __init__(self, owner: str, options: Mapping[str, str]) -> None:
        self.owner = owner
        self._options = dict(options)
        self._known: set[str] = set()

    def text(self, key: str, default: str | None = None) -> str | None:
        self._known.add(key)
        return self._options.get(key, default)

    def required(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise SqlError(f"{self.owner} needs the option '{key}'")
        return value

    def number(self, key: str, default: float | None = None) -> float | None:
        value = self.text(key)
        if value is None:
            return default
        try:
            return int(value)
        except ValueError:
            try:
                return float(value)
            except ValueError:
                raise SqlError(f"{self.owner}: '{key}' = '{value}' is no number") from None

    def flag(self, key: str, default: bool = False) -> bool:
        value = (self.text(key) or str(default)).lower()
        if value not in ("true", "false"):
            raise SqlError(f"{self.owner}: '{key}' = '{value}' is neither true nor false")
        return value == "true"

    def ignored(self, *keys: str) -> None:
        """Options that mean nothing to a batch on Spark: accepted, as documented."""
        self._known.update(keys)

    def check(self) -> None:
        """Raise SqlError for an option that the connector and the format do not have."""
        for key in self._options:
            if key not in self._known:
                near = difflib.get_close_matches(key, sorted(self._known), n=1, cutoff=0.6)
                cure = f"; did you mean '{near[0]}'?" if near else f"; it has {_listed(self._known)}"
                raise SqlError(f"{self.owner} has no option '{key}'{cure}")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing."""
    near = difflib.get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys))
