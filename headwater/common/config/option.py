"""One setting: its key, its type, its default and what it does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headwater.common.config.values import read_boolean, read_float, read_integer, read_text
from headwater.common.errors import ConfigurationError, short_repr

T = TypeVar("T")

_UNITS = {
    "duration": (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)),
    "memory size": (("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10), ("bytes", 1)),
}
"""{type of an option: (unit, its size), largest first}"""


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A typed setting. `read` turns what was set into a value, or raises ValueError naming what it expects."""

    key: str
    read: Callable[[Any], T]
    default: T | None = None
    description: str = ""
    type_name: str = "text"
    minimum: float | None = None
    maximum: float | None = None
    default_from: Callable[[Mapping[str, str]], T] | None = None
    """Makes the default from the environment, where a constant will not do."""
    default_text: str = ""
    """How documentation shows a default that is not a constant."""
    former_keys: tuple[str, ...] = ()
    """Keys of older Flink versions that mean the same."""

    @property
    def environment_variable(self) -> str:
        """HEADWATER_ and the key in capitals: `headwater.epoch.duration` -> HEADWATER_EPOCH_DURATION."""
        name = re.sub(r"[^A-Za-z0-9]", "_", self.key.removeprefix("headwater.")).upper()
        return f"HEADWATER_{name}"

    def parse(self, raw: Any, origin: str = "") -> T:
        """The typed value of `raw`. An error names the key, the value, what was expected, and `origin` if given."""
        try:
            value = self.read(raw)
        except ValueError as error:
            raise self._bad(raw, str(error), origin) from None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if self.minimum is not None and value < self.minimum:
                raise self._bad(raw, f"at least {self.shown(self.minimum)}", origin)
            if self.maximum is not None and value > self.maximum:
                raise self._bad(raw, f"at most {self.shown(self.maximum)}", origin)
        return value

    def default_value(self, environ: Mapping[str, str] | None = None) -> T | None:
        """The default on this machine; None if the setting has none."""
        if self.default_from is not None:
            return self.default_from(os.environ if environ is None else environ)
        return self.default

    def shown(self, value: Any) -> str:
        """Return a value of this option as people write it: `10 s`, `256 mb`, `true`."""
        if isinstance(value, bool):
            return str(value).lower()
        for unit, size in _UNITS.get(self.type_name, ()):
            if value % size == 0 and (value or size == 1):
                return f"{value // size:g} {unit}"
        return f"{value:g}" if isinstance(value, float) else str(value)

    def shown_default(self, quote: str = "") -> str:
        """Return the default for documentation, or in words where it is not a constant. `quote` goes around values."""
        if self.default_text:
            return self.default_text
        return "none" if self.default is None else f"{quote}{self.shown(self.default)}{quote}"

    def _bad(self, raw: Any, expected: str, origin: str) -> ConfigurationError:
        where = f" (from {origin})" if origin else ""
        return ConfigurationError(f"{self.key}: expected {expected}, found {short_repr(raw, 100)}{where}")


class ConfigOptions:
    """Builds options as PyFlink does: `ConfigOptions.key("my.limit").int_type().default_value(3)`."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """A key that still needs a type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_boolean, "boolean")

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_integer, "integer")

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_integer, "integer")

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_float, "number")

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_float, "number")

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, read_text, "text")

    class TypedConfigOptionBuilder(Generic[T]):
        """A key with a type that still needs its default."""

        def __init__(self, key: str, read: Callable[[Any], T], type_name: str) -> None:
            self._key, self._read, self._type_name = key, read, type_name

        def default_value(self, value: T) -> ConfigOption[T]:
            return ConfigOption(self._key, self._read, default=value, type_name=self._type_name)

        def no_default_value(self) -> ConfigOption[T]:
            return ConfigOption(self._key, self._read, type_name=self._type_name)
