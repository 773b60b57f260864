"""Reads pickles that somebody else may have written: nothing that they name is imported, made or called.

A pickle can name any function, and pickle calls it. Here plain values and containers become what they were; for
whatever else a pickle names there is a stand-in, which only keeps what it is given. So what a state holds can be
counted and described without a line of anybody's code.
"""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any, Final

from headwater.state.evolution import changed_classes as evolution
from headwater.state.evolution.changed_classes import StoredRecord
from headwater.state.evolution.schema import ClassSchema

_PLAIN: Final[dict[tuple[str, str], Any]] = {
    (cls.__module__, cls.__qualname__): cls
    for cls in (
        *(bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, range, slice),
        *(OrderedDict, defaultdict, deque, decimal.Decimal),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    )
}
"""All are written in C, cannot be changed, and do nothing but hold what they are given."""

_SKELETON: Final = ("cloudpickle.cloudpickle", "_make_skeleton_class")
_REVIVE: Final = (evolution.__name__, evolution._revive.__qualname__)


class StandIns:
    """What stands for the classes and functions that the pickles of one state name."""

    def __init__(self) -> None:
        self.schemas: dict[tuple[str, str], ClassSchema] = {}
        """What is known about them. Plain data, which was read from beside the pickles."""
        self._classes: dict[ClassSchema, type[StandIn]] = {}

    def learn(self, schemas: Iterable[ClassSchema]) -> None:
        self.schemas.update(((schema.module, schema.qualname), schema) for schema in schemas)

    def of(self, module: str, name: str) -> type[StandIn]:
        return self.of_schema(self.schemas.get((module, name)) or ClassSchema(module, name, "", ()))

    def of_schema(self, schema: ClassSchema) -> type[StandIn]:
        found = self._classes.get(schema)
        if found is None:
            found = self._classes[schema] = type("StandIn", (StandIn,), {"__stored_schema__": schema})
        return found

    @property
    def unknown(self) -> set[str]:
        """Names of those of which nothing is known but their name; headwater's own, which are plain data, left out."""
        return {
            schema.name
            for schema in self._classes
            if not schema.kind and not schema.module.startswith(("headwater.", "cloudpickle."))
        }

    def loads(self, data: bytes) -> Any:
        """The value in `data`, whatever follows it."""
        return self.load(io.BytesIO(data))

    def load(self, stream: io.BytesIO) -> Any:
        return _Unpickler(stream, self).load()

    def key_behind(self, data: bytes) -> Any:
        """As `rocksdb_values.ValueReader` has it."""
        stream = io.BytesIO(data)
        self.load(stream)
        return self.load(stream)


class StandIn(StoredRecord):
    """An object of a class that is not loaded, or what a function that is not called would have returned."""

    def __setstate__(self, state: Any) -> None:
        try:
            super().__setstate__(state)
        except (TypeError, ValueError):  # a form that only its class knows
            vars(self)["state"] = state

    def __call__(self, *values: Any, **named: Any) -> StandIn:
        """For a function that a function would have returned."""
        made = type(self)(*values, **named)
        assert isinstance(made, StandIn)
        return made

    def extend(self, items: Iterable[Any]) -> None:
        vars(self).setdefault("items", []).extend(items)

    def append(self, item: Any) -> None:
        self.extend((item,))

    add = append

    def __setitem__(self, key: Any, value: Any) -> None:
        self.append((key, value))

    def __hash__(self) -> int:
        try:
            return super().__hash__()
        except TypeError:
            return hash(type(self).__stored_schema__)


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, stand_ins: StandIns) -> None:
        super().__init__(stream)
        self._stand_ins = stand_ins

    def find_class(self, module: str, name: str) -> Any:
        plain = _PLAIN.get((module, name))
        if plain is not None:
            return plain
        if (module, name) == _SKELETON:
            return self._skeleton
        if (module, name) == _REVIVE:
            return self._revive
        return self._stand_ins.of(module, name)

    def _skeleton(self, _: Any, name: Any, *__: Any) -> type[StandIn]:
        """For a class that is in the pickle itself: pickle wants a class to make objects of."""
        return self._stand_ins.of("__main__", str(name))

    def _revive(self, schema: tuple[Any, ...], values: dict[str, Any]) -> StandIn:
        """For a `StoredRecord` that was stored once more."""
        module, qualname, kind, fields = schema
        known = ClassSchema(str(module), str(qualname), str(kind), tuple((str(key), str(form)) for key, form in fields))
        made: StandIn = object.__new__(self._stand_ins.of_schema(known))
        vars(made).update(values)
        return made
