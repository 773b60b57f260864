"""What threads other than the processing one may ask a keyed backend: values now, and as of the last checkpoint.

The last durable checkpoint is read by going back from now: through the undo log of the epoch, the log of the epochs
since the last cut, the log of the checkpoint in flight. A reader that must see one epoch for longer pins it; logs of
later checkpoints are then kept too. The processing thread waits for readers only at the end of an epoch, and no reader
holds the lock longer than it takes to find one entry, or to list the keys.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Generic

from headwater.common.errors import StateError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.state.copying import captured
from headwater.state.descriptors import AggregatingStateDescriptor
from headwater.state.heap.store import ABSENT
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.registered import Registered, S
from headwater.state.snapshot.layout import StateLayout
from headwater.state.ttl.expiring import TtlPolicy

_SAMPLE = 64
"""So many entries are measured to estimate the size of a state."""


class ReadableBackend(KeyedStateBackend, Generic[S]):
    """A keyed backend whose states other threads can read. Epochs are those of durable checkpoints."""

    def __init__(self, uid: str, max_parallelism: int, key_groups: range) -> None:
        super().__init__(uid, max_parallelism, key_groups)
        self._states: dict[str, Registered[S]] = {}
        self._boundary = threading.Lock()
        """Held while the committed state changes, and while a query reads it."""
        self.cut_epoch = -1
        """The epoch of the checkpoint that `commit_epoch(cut=True)` cuts. The slot sets it before."""
        self.durable_epoch = -1
        """The epoch of the last durable checkpoint. After a load, the slot sets it to the loaded one."""
        self.breathe: Callable[[], None] = lambda: None
        """Called between two parts of a long step of the processing thread, which holds no lock then."""
        self._pins: dict[int, int] = {}  # {epoch: number of readers}
        self._closed = False
        self._kept_readable = False
        self._panes_shown: dict[str, tuple[int, Callable[[Any], Any] | None]] = {}  # {name: (size, result of a value)}

    # --- for readers, in any thread

    def pin(self) -> int:
        """Keep the last durable checkpoint readable until `unpin`, and return its epoch."""
        with self._boundary:
            epoch = self.durable_epoch
            self._pins[epoch] = self._pins.get(epoch, 0) + 1
            return epoch

    def unpin(self, epoch: int) -> None:
        with self._boundary:
            left = self._pins.get(epoch, 0) - 1
            if left > 0:
                self._pins[epoch] = left
                return
            self._pins.pop(epoch, None)
            self._forget_before(min(self._pins, default=self.durable_epoch))

    def read(self, name: str, key: Any, namespace: Any = None, epoch: int | None = None) -> Any:
        """Return the value of `key` at a durable epoch, or now (None); ABSENT if there is none, or it has expired.

        Raises `QueryError` EPOCH_GONE if `epoch` is neither pinned nor the last durable one. The caller must not
        change the result.
        """
        registered = self._registered_as(name)
        stored_key = (key, namespace) if registered.layout.namespaced else key
        with self._boundary:
            self._check(epoch)
            store = registered.store
            found = store.newest(stored_key) if epoch is None else store.durable(stored_key, epoch)
        shown = self._shown(registered, found)
        result_of = self._panes_shown[name][1] if name in self._panes_shown else None
        return shown if result_of is None or shown is ABSENT else result_of(captured(shown))

    def candidates(self, name: str, epoch: int | None) -> Iterator[Any]:
        """Yield the keys, or (key, namespace) pairs, that may have a value; each once. `read` says which have."""
        store = self._registered_as(name).store
        with self._boundary:
            self._check(epoch)
            stored, others = store.candidates(epoch)
            apart = dict.fromkeys(others)
        return chain((key for key in stored if key not in apart), apart)

    def layout_of(self, name: str) -> StateLayout | None:
        """Return the layout of a state; None if there is no such state."""
        registered = self._states.get(name)
        return registered.layout if registered is not None else None

    def finds_namespaces(self, name: str) -> bool:
        """Return True if `namespaces_to_try` can be asked. If not, look for the key among the `candidates`."""
        return self._registered_as(name).store.finds_pairs

    def namespaces_to_try(self, name: str, key: Any, epoch: int | None) -> list[Any]:
        """Return the namespaces in which `key` may have a value."""
        store = self._registered_as(name).store
        with self._boundary:
            self._check(epoch)
            return [pair[1] for pair in store.pairs_to_try(key, epoch)]

    def described(self) -> list[dict[str, Any]]:
        """Return what there is: name, kind, types and number of keys of each state; None if that is not known.

        The namespace of panes is where they start.
        """
        found = []
        for name, registered in list(self._states.items()):
            descriptor, layout = registered.descriptor, registered.layout
            type_info = descriptor.type_info if descriptor is not None else None
            found.append(
                {
                    "name": name,
                    "kind": layout.kind,
                    "namespaced": layout.namespaced,
                    "ttl": layout.ttl,
                    "window_ms": self._panes_shown.get(name, (None, None))[0],
                    "type": str(type_info) if type_info is not None else None,
                    "entries": registered.store.number(),
                    "queryable_name": descriptor.get_queryable_state_name() if descriptor is not None else None,
                }
            )
        return found

    def estimated_bytes(self, name: str) -> int | None:
        """Return about how large the keys and values of a state are, serialized; None if that is not known.

        It is the number of keys times the mean of a few: good as far as values are alike.
        """
        store = self._registered_as(name).store
        number = store.number()
        sizes = []
        for key in store.some_keys(_SAMPLE) if number else ():
            with self._boundary:
                found = store.newest(key)
            with contextlib.suppress(Exception):  # it is being changed: the others will do
                sizes.append(len(pickle.dumps((key, found), pickle.HIGHEST_PROTOCOL)) if found is not ABSENT else 0)
        if number == 0:
            return 0
        return round(number * sum(sizes) / len(sizes)) if number is not None and sizes else None

    def _check(self, epoch: int | None) -> None:
        if self._closed:
            raise QueryError(QueryProblem.RESTORING, f"operator '{self.uid}' is being restored")
        if epoch is not None and epoch != self.durable_epoch and epoch not in self._pins:
            raise QueryError(
                QueryProblem.EPOCH_GONE,
                f"epoch {epoch} of operator '{self.uid}' can no longer be read; the last durable one is "
                f"{self.durable_epoch}: ask again",
            )

    def _shown(self, registered: Registered[S], found: Any) -> Any:
        """Return what a user would get: without expiry dates and expired parts, an aggregate's result."""
        if found is ABSENT:
            return ABSENT
        if registered.layout.ttl:
            found = _unstamped(found, registered.layout.kind, registered.policy)
        if isinstance(registered.descriptor, AggregatingStateDescriptor) and found is not ABSENT:
            return registered.descriptor.get_agg_function().get_result(captured(found))
        return found

    def _registered_as(self, name: str) -> Registered[S]:
        registered = self._states.get(name)
        if registered is None:
            raise QueryError(QueryProblem.UNKNOWN_STATE, f"operator '{self.uid}' has no state '{name}'")
        return registered

    # --- for the processing thread

    def keep_readable(self) -> None:
        self._kept_readable = True

    def describe_panes(self, name: str, size_ms: int, result_of: Callable[[Any], Any] | None) -> None:
        self._panes_shown[name] = (size_ms, result_of)

    def committed_value(self, state_name: str, key: Any, namespace: Any = None) -> Any:
        registered = self._known(state_name)
        with self._boundary:
            found = registered.store.committed((key, namespace) if registered.layout.namespaced else key)
        shown = self._shown(registered, found)
        return None if shown is ABSENT else shown

    def _known(self, state_name: str) -> Registered[S]:
        registered = self._states.get(state_name)
        if registered is None:
            names = ", ".join(sorted(self._states)) or "none"
            raise StateError(f"operator '{self.uid}' has no state '{state_name}'; it has: {names}")
        return registered

    def _settle_cut(self) -> tuple[int | None, bool]:
        """The checkpoint in flight is durable. Return what to do with its log, as `checkpoint_completed` takes it."""
        before, self.durable_epoch = self.durable_epoch, self.cut_epoch
        wanted = any(epoch <= before for epoch in self._pins)
        return before if wanted else None, before not in self._pins

    def _forget_before(self, epoch: int) -> None:
        for registered in list(self._states.values()):
            registered.store.forget_before(epoch)


def _unstamped(found: Any, kind: str, policy: TtlPolicy | None) -> Any:
    """Return a stored value without expiry dates and expired parts; ABSENT if nothing is left."""
    if kind == "list":
        return [entry[0] for entry in found if policy is None or policy.alive(entry)] or ABSENT
    if kind == "map":
        return {key: entry[0] for key, entry in found.items() if policy is None or policy.alive(entry)} or ABSENT
    return found[0] if policy is None or policy.alive(found) else ABSENT
