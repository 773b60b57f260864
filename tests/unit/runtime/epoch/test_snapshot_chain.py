"""A chain of snapshots is the same at the other end, and is not decoded on its way."""

from __future__ import annotations

import pickle

from headwater.checkpoint.snapshot.file import NativeFile, SnapshotRef
from headwater.runtime.epoch.snapshot_chain import SnapshotChain

REFS = [
    SnapshotRef("full", 10, 2**63, 3, "full", (0, 128)),
    SnapshotRef("native", 10, 1, 4, "native", (0, 128), (NativeFile("000001.sst", 7, 8),)),
    SnapshotRef("delta", 10, 1, 9, "delta", (0, 128), since=5),
]


def test_a_chain_is_a_sequence_that_survives_pickling_twice() -> None:
    chain = SnapshotChain(REFS)
    passed_on = pickle.loads(pickle.dumps(chain))
    assert passed_on._refs is None
    arrived = pickle.loads(pickle.dumps(passed_on))
    assert passed_on._refs is None, "who only passes it on does not decode it"
    assert arrived == chain and list(arrived) == REFS and len(arrived) == 3
    assert arrived[-1] == REFS[-1] and arrived[1:] == REFS[1:] and REFS[0] in arrived
    assert not pickle.loads(pickle.dumps(SnapshotChain()))
