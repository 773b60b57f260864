"""Which deltas the next one takes the place of."""

from __future__ import annotations

import pytest

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.ids import Place
from headwater.runtime.epoch.messages import SnapshotPart
from headwater.runtime.job.snapshot_chains import SnapshotChains
from headwater.runtime.slot import recent_deltas
from headwater.runtime.slot.recent_deltas import ABSORB_BYTES, RecentDeltas
from headwater.state.snapshot.section import Section

HERE = Place(1, 0)


@pytest.fixture(autouse=True)
def after_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_deltas, "ABSORB_DELTAS", 3)


def section(epoch: int) -> Section:
    return Section("uid", "keyed", "state", 0, b"%d" % epoch)


def ref(epoch: int, kind: str = "delta", length: int = 100, since: int | None = None) -> SnapshotRef:
    return SnapshotRef(f"{kind}-{epoch}", length, 0, epoch, kind, (0, 1), since=since)  # type: ignore[arg-type]


def written(*refs: SnapshotRef) -> RecentDeltas:
    deltas = RecentDeltas()
    for each in refs:
        deltas.wrote(each.name, [section(each.epoch)])
    return deltas


def test_few_deltas_stay() -> None:
    chain = [ref(0, "full"), ref(1), ref(2)]
    assert written(*chain[1:]).absorbable(chain) == []


def test_several_are_absorbed_in_their_order_and_the_full_one_stays() -> None:
    chain = [ref(0, "full"), ref(1), ref(2), ref(3)]
    deltas = written(*chain[1:])
    assert deltas.absorbable(chain) == chain[1:]
    assert deltas.sections_of(chain[1:]) == [section(1), section(2), section(3)]


def test_one_that_another_slot_wrote_ends_the_run() -> None:
    chain = [ref(0, "full"), ref(1), ref(2), ref(3), ref(4)]
    assert written(*chain[2:]).absorbable(chain) == chain[2:]
    assert written(*chain[3:]).absorbable(chain) == []


def test_a_larger_one_is_absorbed_again_once_those_behind_it_are_as_large() -> None:
    large, chain = ref(3, length=301, since=1), [ref(4), ref(5), ref(6)]
    assert written(large, *chain).absorbable([large, *chain]) == chain
    small = ref(3, length=300, since=1)
    assert written(small, *chain).absorbable([small, *chain]) == [small, *chain]


def test_large_deltas_are_left_to_full_snapshots() -> None:
    chain = [ref(number, length=ABSORB_BYTES // 2) for number in range(1, 5)]
    assert written(*chain).absorbable(chain) == []
    deltas = RecentDeltas()
    deltas.wrote("large", [Section("uid", "keyed", "state", 0, bytes(ABSORB_BYTES))])
    assert deltas._sections == {}


def test_what_the_chain_lost_is_forgotten() -> None:
    chain = [ref(1), ref(2), ref(3)]
    deltas = written(*chain, ref(9))
    deltas.keep(chain)
    assert set(deltas._sections) == {each.name for each in chain}


def test_the_driver_puts_the_new_delta_in_the_place_of_those_that_it_has() -> None:
    chains = SnapshotChains({HERE: [ref(0, "full"), ref(1), ref(2), ref(3)]})
    chains.completed(chains.with_parts({HERE: SnapshotPart("token", ref(4, since=2))}))
    assert chains.durable[HERE] == [ref(0, "full"), ref(1), ref(4, since=2)]


@pytest.mark.parametrize(("full_epoch", "is_used"), [(1, True), (2, False), (3, False)])
def test_a_full_snapshot_in_the_middle_of_what_a_delta_has_is_dropped(full_epoch: int, is_used: bool) -> None:
    """A delta may not be applied to a state that has its changes already."""
    chains = SnapshotChains({HERE: [ref(0, "full"), ref(1), ref(2), ref(3)]})
    full = ref(full_epoch, "full")
    chains.add_full(HERE, full)
    found = chains.with_parts({HERE: SnapshotPart("token", ref(4, since=2))})
    expected = [full, ref(4, since=2)] if is_used else [ref(0, "full"), ref(1), ref(4, since=2)]
    assert found[HERE] == expected
    chains.completed(found)
    assert chains.fulls == {}
