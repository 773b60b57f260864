"""A job as its checkpoint directory shows it: real backends, snapshot files and a manifest, no runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.restore.reader import restored_sections
from headwater.checkpoint.restore.rescale import OperatorShape, PartitionRestore
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.keys.key_groups import KeyRouter, key_group_range
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.section import Section

VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
OFFSETS = ListStateDescriptor("offsets")
RULES = MapStateDescriptor("rules")


class OperatorState:
    """The state of one operator in one partition."""

    def __init__(self, uid: str, max_parallelism: int, partition: int, parallelism: int) -> None:
        groups = key_group_range(partition, max_parallelism, parallelism)
        self.keyed = HeapKeyedStateBackend(uid, max_parallelism, groups)
        self.unkeyed = OperatorStateBackend(uid)

    def load(self, sections: Iterable[Section]) -> None:
        for section in sections:
            if section.uid == self.keyed.uid:
                (self.keyed if section.key_group >= 0 else self.unkeyed).load_section(section)

    def values(self) -> dict[Any, Any]:
        return {key: self.keyed.committed_value("value", key) for key in self._keys("value")}

    def lists(self) -> dict[Any, Any]:
        return {key: self.keyed.committed_value("list", key) for key in self._keys("list")}

    def _keys(self, name: str) -> list[Any]:
        return self.keyed.keys(name) if name in self.keyed.state_names() else []


class OldJob:
    """Operators of one stage, at one parallelism, with a checkpoint directory."""

    def __init__(self, root: Path, uids: Iterable[str], parallelism: int, max_parallelism: int = 16) -> None:
        self.layout = CheckpointLayout(root)
        self.layout.create()
        self.max_parallelism = max_parallelism
        self.parallelism = parallelism
        self.uids = list(uids)
        self.router = KeyRouter(max_parallelism, parallelism)
        self.states = {
            uid: [OperatorState(uid, max_parallelism, index, parallelism) for index in range(parallelism)]
            for uid in self.uids
        }
        self.chains: list[list[SnapshotRef]] = [[] for _ in range(parallelism)]
        self.epoch = -1
        self.manifest: Manifest

    def of_key(self, uid: str, key: Any) -> HeapKeyedStateBackend:
        backend = self.states[uid][self.router[key]].keyed
        backend.current_key = key
        return backend

    def run_epoch(self, change: Callable[[OldJob], None], *, full: bool = False, **facts: Any) -> Manifest:
        """One epoch that ends with a checkpoint."""
        self.epoch += 1
        partitions = [[states[index] for states in self.states.values()] for index in range(self.parallelism)]
        backends = [[b for state in partition for b in (state.keyed, state.unkeyed)] for partition in partitions]
        for backend in (backend for owned in backends for backend in owned):
            backend.begin_epoch()
        change(self)
        for index, owned in enumerate(backends):
            sections: list[Section] = []
            for backend in owned:
                delta = backend.delta_sections()
                sections += list(backend.full_sections()) if full else delta
                backend.commit_epoch(cut=True)
                backend.checkpoint_completed()
            if sections:
                kind = "full" if full else "delta"
                path = self.layout.new_snapshot(1, index, self.epoch, f"a{self.epoch}", "full" if full else "delta")
                header = {"epoch": self.epoch, "kind": kind, "key_groups": (0, self.max_parallelism)}
                ref = write_snapshot(path, header, sections, durable=False)
                self.chains[index] = [ref] if full else [*self.chains[index], ref]
        fields: dict[str, Any] = {
            "job_id": "j",
            "job_name": "old",
            "epoch": self.epoch,
            "incarnation": 1,
            "created_ms": 1000 + self.epoch,
            "now_ms": 0,
            "plan_fingerprint": "p",
            "max_parallelism": self.max_parallelism,
            "operators": {uid: uid.title() for uid in self.uids},
            "partitions": [
                PartitionRecord(
                    1,
                    index,
                    list(self.chains[index]),
                    {f"{side}:{uid}": 100 + index for uid in self.uids for side in ("head", "out")},
                    next_processing_timer_ms=50 - index,
                )
                for index in range(self.parallelism)
            ],
        }
        self.manifest = Manifest(**{**fields, **facts})
        ManifestStore(self.layout, durable=False).write(self.manifest)
        return self.manifest

    def shape(self, parallelism: int, stage: int = 1) -> list[OperatorShape]:
        return [OperatorShape(uid, stage, parallelism, True) for uid in self.uids]


def restored(restore: PartitionRestore, uid: str, max_parallelism: int, parallelism: int) -> OperatorState:
    """The state that a new partition of operator `uid` begins with."""
    state = OperatorState(uid, max_parallelism, restore.partition, parallelism)
    state.load(restored_sections(restore))
    return state
