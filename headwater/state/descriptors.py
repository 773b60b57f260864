"""State descriptors: the name and shape of a state. Names and signatures as in `pyflink.datastream.state`.

Type information is optional; without it values are any Python objects that can be pickled.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from headwater.common.callables import unfit
from headwater.common.errors import StateError, TypeMismatchError
from headwater.common.type_system.information import TypeInformation
from headwater.common.typeinfo import Types
from headwater.state.ttl.config import StateTtlConfig

_AGGREGATE_METHODS = ("create_accumulator", "add", "get_result", "merge")


class StateDescriptor(ABC):
    """Base of all descriptors. The name is the identity of the state within its operator, across versions of a job."""

    kind: ClassVar[str]
    """The shape of the state. It is persisted, so that a restore with another shape is refused."""

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise StateError(f"a state's name must be a string that is not empty, found {name!r}")
        if type_info is not None and not isinstance(type_info, TypeInformation):
            raise TypeMismatchError(
                f"state '{name}': a type must be a TypeInformation such as Types.STRING(), found {type_info!r}"
            )
        self.name = name
        self.type_info = type_info
        self._ttl_config: StateTtlConfig | None = None
        self._queryable_name: str | None = None
        self._migrations: dict[int, Callable[[Any], Any]] = {}

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the state expire as `ttl_config` says. A state that was stored without TTL cannot get one later."""
        if not isinstance(ttl_config, StateTtlConfig):
            hint = "; did you forget build()?" if isinstance(ttl_config, StateTtlConfig.Builder) else ""
            raise TypeMismatchError(
                f"state '{self.name}': enable_time_to_live() expects a StateTtlConfig such as "
                f"StateTtlConfig.new_builder(Duration.of_hours(1)).build(), found {ttl_config!r}{hint}"
            )
        self._ttl_config = ttl_config

    def get_ttl_config(self) -> StateTtlConfig | None:
        """Return the TTL if there is one and it is enabled, otherwise None."""
        config = self._ttl_config
        return config if config is not None and config.is_enabled() else None

    def set_queryable(self, queryable_state_name: str) -> None:
        """Let clients find this state under that name, which must be unique in the job. As in Flink, it is set once.

        Every keyed state can be queried by its operator and its own name. The name here does not change when the
        operator does, and reads of the last checkpoint work from the first one on with every state backend.
        """
        if not isinstance(queryable_state_name, str) or not queryable_state_name:
            raise StateError(
                f"state '{self.name}': a queryable name must be a string that is not empty, found "
                f"{queryable_state_name!r}"
            )
        if self._queryable_name is not None:
            raise StateError(
                f"state '{self.name}' already has the queryable name '{self._queryable_name}'; set it once"
            )
        self._queryable_name = queryable_state_name

    def is_queryable(self) -> bool:
        """True if `set_queryable` was called."""
        return self._queryable_name is not None

    def get_queryable_state_name(self) -> str | None:
        return self._queryable_name

    def migrate_with(self, function: Callable[[Any], Any], *, to_version: int) -> Self:
        """Declare that values of this state have version `to_version`; `function` makes one from the version before.

        Headwater's own; PyFlink has nothing like it. Without it, a state has version 1. When state of a lower version
        is restored, `function` is called once for each value: a value state's value, each element of a list state, each
        map value of a map state, a reducing state's value, an aggregating state's accumulator. State of version 1 goes
        through the functions to 2 and to 3 if the program has both.

        `function` gets dataclasses and NamedTuples as objects of today's class if that is possible. Otherwise, or if
        the class is gone, it gets a `StoredRecord`, which has the stored fields as attributes.
        """
        if isinstance(to_version, bool) or not isinstance(to_version, int) or to_version < 2:
            raise StateError(
                f"state '{self.name}': to_version is {to_version!r}; expected 2 or more, as 1 is the first"
            )
        if not callable(function):
            raise StateError(f"state '{self.name}': migrate_with needs a function of one value, found {function!r}")
        if to_version in self._migrations:
            raise StateError(
                f"state '{self.name}' already has a migration to version {to_version}; give each step once"
            )
        self._migrations[to_version] = function
        return self

    @property
    def version(self) -> int:
        """The version of the values that this program writes."""
        return max(self._migrations, default=1)

    def get_migrations(self) -> Mapping[int, Callable[[Any], Any]]:
        """Return {version: function that makes a value of it from one of the version before}."""
        return self._migrations

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor):
    """One value per key."""

    kind = "value"

    def __init__(self, name: str, value_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """A list per key."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, None if elem_type_info is None else Types.LIST(elem_type_info))


class MapStateDescriptor(StateDescriptor):
    """A map per key."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ) -> None:
        if key_type_info is None and value_type_info is None:
            super().__init__(name)
        else:
            anything = Types.PICKLED_BYTE_ARRAY()
            keys = anything if key_type_info is None else key_type_info
            super().__init__(name, Types.MAP(keys, anything if value_type_info is None else value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    """One value per key, combined by `reduce_function`: a `ReduceFunction`, or a callable of two values."""

    kind = "reducing"

    def __init__(self, name: str, reduce_function: Any, type_info: TypeInformation | None = None) -> None:
        super().__init__(name, type_info)
        if found := unfit(getattr(reduce_function, "reduce", reduce_function), 2):
            raise TypeMismatchError(f"state '{name}' needs a ReduceFunction or a callable of two values, found {found}")
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """One accumulator per key of `agg_function`, an `AggregateFunction`."""

    kind = "aggregating"

    def __init__(self, name: str, agg_function: Any, state_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, state_type_info)
        missing = [method for method in _AGGREGATE_METHODS if not callable(getattr(agg_function, method, None))]
        if missing or isinstance(agg_function, type):
            lacks = "it is a class; pass an instance" if isinstance(agg_function, type) else f"it lacks {missing}"
            raise TypeMismatchError(
                f"state '{name}' needs an AggregateFunction, found {type(agg_function).__qualname__}: {lacks}"
            )
        self._agg_function = agg_function

    def get_agg_function(self) -> Any:
        return self._agg_function
