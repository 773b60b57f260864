"""One state of a keyed backend: its store, and what the program asked for it with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from headwater.state.api import State
from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.stored_form import StoredForm
from headwater.state.snapshot.layout import StateLayout
from headwater.state.ttl.expiring import TtlPolicy, TtlState
from headwater.state.type_check import StateTypeCheck


class Store(Protocol):
    """Holds one state. These are the methods that all backends use."""

    def clear(self) -> None: ...

    def keys_stored(self) -> Collection[Any]: ...

    def checkpoint_completed(self, keep_as: int | None = None, *, join: bool = False) -> None: ...

    def checkpoint_failed(self) -> None: ...

    def forget_before(self, epoch: int) -> None: ...

    # For other threads, which hold the backend's lock and must not change what they get. ABSENT: no entry.

    def committed(self, key: Any) -> Any: ...

    def newest(self, key: Any) -> Any: ...

    def durable(self, key: Any, epoch: int) -> Any: ...

    def some_keys(self, most: int) -> list[Any]: ...

    def candidates(self, epoch: int | None) -> tuple[Iterable[Any], Iterable[Any]]: ...

    def number(self) -> int | None: ...

    finds_pairs: ClassVar[bool]
    """`pairs_to_try` finds the pairs of a key without a look at all others."""

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]: ...


S = TypeVar("S", bound=Store)


@dataclass
class Registered(Generic[S]):
    """One state of a backend. A restored state has only a form and a store until the program asks for it."""

    form: StoredForm
    store: S
    state: State | None = None
    descriptor: StateDescriptor | None = None
    policy: TtlPolicy | None = None
    expiring: TtlState | None = None
    type_check: StateTypeCheck | None = None
    to_examine: Iterator[Any] = field(default_factory=lambda: iter(()))
    """Keys that the current round of TTL clean-up has not examined yet. Only the heap backend uses it."""

    @property
    def layout(self) -> StateLayout:
        return self.form.layout
