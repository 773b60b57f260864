"""A delta is as large as what changed, not as what is there."""

from __future__ import annotations

from pathlib import Path

from headwater.checkpoint.snapshot.file import write_snapshot
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.heap.backend import HeapKeyedStateBackend

KEYS = 1_000_000
HEADER = {"epoch": 0, "key_groups": (0, 128)}


def test_one_percent_of_the_keys_changed_writes_at_most_three_percent(tmp_path: Path) -> None:
    backend = HeapKeyedStateBackend("uid", 128, range(128))
    totals = backend.get_state(ValueStateDescriptor("totals"))
    backend.begin_epoch()
    for key in range(KEYS):
        backend.current_key = key
        totals.update((key % 7, key))
    full = write_snapshot(tmp_path / "full", {**HEADER, "kind": "full"}, backend.full_sections(), durable=False)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.begin_epoch()
    for key in range(0, KEYS, 100):
        backend.current_key = key
        count, total = totals.value()
        totals.update((count + 1, total + 1))
    delta = write_snapshot(tmp_path / "delta", {**HEADER, "kind": "delta"}, backend.delta_sections(), durable=False)
    assert delta.length <= 0.03 * full.length, f"{delta.length:,} of {full.length:,} bytes"
