"""Key and value pairs of a job, as in pyflink.common.Configuration."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from headwater.common.config.option import ConfigOption, ConfigOptions

T = TypeVar("T")


class Configuration:
    """Settings by key. Values keep the type they were set with and are converted when read.

    Anything may be stored; `config_options.validate` checks the keys and values that headwater knows.
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)
        self._defaults: builtins.set[str] = builtins.set() if other is None else builtins.set(other._defaults)
        """Keys that hold a default: nobody set them."""

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        configuration = cls()
        for key, value in map.items():
            configuration._put(key, value)
        return configuration

    def get(self, option: ConfigOption[T], default: T | None = None) -> T:
        """The typed value of an option: what was set, else `default`, else the option's own default.

        An option without any of the three gives None, although the signature cannot say so.
        """
        for key in (option.key, *option.former_keys):
            if key in self._values:
                return option.parse(self._values[key])
        value = option.default_value() if default is None else default
        return value  # type: ignore[return-value]

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set an option; a value it cannot read is refused at once."""
        option.parse(value)
        return self._put(option.key, value)

    def set_default(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set a default: `is_set` does not count it."""
        self.set(option, value)
        self._defaults.add(option.key)
        return self

    def is_set(self, option: ConfigOption[Any]) -> bool:
        """Return True if somebody set the option; a default does not count."""
        return any(key in self._values and key not in self._defaults for key in (option.key, *option.former_keys))

    def get_string(self, key: str, default_value: str) -> str:
        return _text(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        return self._put(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        return self.get(ConfigOptions.key(key).long_type().no_default_value(), default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        return self.set(ConfigOptions.key(key).long_type().no_default_value(), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        return self.get(ConfigOptions.key(key).boolean_type().no_default_value(), default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self.set(ConfigOptions.key(key).boolean_type().no_default_value(), value)

    def get_float(self, key: str, default_value: float) -> float:
        return self.get(ConfigOptions.key(key).double_type().no_default_value(), float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        return self.set(ConfigOptions.key(key).double_type().no_default_value(), float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        value = self._values.get(key, default_value)
        return bytearray(value.encode() if isinstance(value, str) else value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        return self._put(key, bytes(value))

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The parts of "a;b" or of "[a, b]"."""
        text = value.strip()
        if text.startswith("[") and text.endswith("]"):
            parts = re.split(r"\s*,\s*", text[1:-1].strip())
            return [part.strip("'\"") for part in parts if part]
        return text.split(";") if text else []

    def key_set(self) -> builtins.set[str]:
        return builtins.set(self._values)

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a key. Return True if it was there."""
        if key not in self._values:
            return False
        del self._values[key]
        return True

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Copy all pairs of `other`, with `prefix` before their keys. They replace pairs that are here."""
        for key, value in other._values.items():
            self._put((prefix or "") + key, value)
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all pairs into `target_dict`, with the types they were set with."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """All pairs as text, as a configuration file would have them."""
        return {key: _text(value) for key, value in self._values.items()}

    def raw_items(self) -> Iterator[tuple[str, Any]]:
        """All pairs with the types they were set with."""
        return iter(self._values.items())

    def _put(self, key: str, value: Any) -> Configuration:
        if not isinstance(key, str) or not key:
            raise ValueError(f"a configuration key is text that is not empty, found {key!r}")
        if value is None:
            raise ValueError(f"{key}: cannot be set to None; use remove_config({key!r}) to return to the default")
        self._values[key] = value
        self._defaults.discard(key)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()})"

    def __str__(self) -> str:
        return str(dict(sorted(self.to_dict().items())))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ";".join(map(_text, value))
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
