"""Which of the keys that were asked for a row belongs to: the database may spell a key in another type. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

_PADDED: Final = 1042
"""PostgreSQL's char(n): it ends with spaces that do not count."""

KeyValues = tuple[Any, ...]


class AskedKeys:
    """The keys of one query. Made before it, used for each of its rows."""

    def __init__(self, keys: Iterable[KeyValues], codes: Sequence[Any], *, postgres_types: bool) -> None:
        """`codes`: the driver's type of each key column."""
        self._padded = [postgres_types and code == _PADDED for code in codes]
        self._keys = set(keys)
        self._by_value: dict[KeyValues, list[KeyValues]] = {}
        for key in self._keys:
            self._by_value.setdefault(self._asked_value(key), []).append(key)

    def of(self, answered: KeyValues) -> list[KeyValues]:
        """The keys that were asked for and mean `answered`; [] if the database sees one where Python sees none."""
        found = [answered] if answered in self._keys else []
        for value in dict.fromkeys((self._asked_value(answered), self._as_text_or_float(answered))):
            found += self._by_value.get(value, ())
        return list(dict.fromkeys(found))

    def _asked_value(self, key: KeyValues) -> KeyValues:
        return tuple(
            part.rstrip(" ") if padded and isinstance(part, str) else part
            for part, padded in zip(key, self._padded, strict=True)
        )

    def _as_text_or_float(self, key: KeyValues) -> KeyValues:
        """The key as somebody may have asked for it who has no UUID, and no Decimal."""
        return tuple(
            str(part) if isinstance(part, UUID) else float(part) if isinstance(part, Decimal) else part
            for part in self._asked_value(key)
        )
