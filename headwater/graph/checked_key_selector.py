"""A key selector whose keys are checked against their declared type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.type_system.checker import compile_checker
from headwater.common.typeinfo import TypeInformation


class CheckedKeySelector:
    """Calls `key_of` and checks the key. Returns the key unchanged, so that state sees the user's own key."""

    __slots__ = ("_check", "_key_of", "_key_type")

    def __init__(self, key_of: Callable[[Any], Any], key_type: TypeInformation) -> None:
        self._key_of = key_of
        self._key_type = key_type
        self._check = compile_checker(key_type, "key")

    def __call__(self, value: Any) -> Any:
        key = self._key_of(value)
        try:
            self._check(key)
        except TypeMismatchError as error:
            raise TypeMismatchError(f"key {short_repr(key)} of record {short_repr(value)}: {error}") from None
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return CheckedKeySelector, (self._key_of, self._key_type)
