"""Which other chain has the same state. Snapshots here are names with epochs: nothing is read or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import SnapshotKind
from headwater.checkpoint.restore.repair import another_chain
from headwater.checkpoint.snapshot.file import NativeFile, SnapshotRef

PLACE = (1, 0)


def snapshot(name: str, length: int = 10, files: Sequence[str] = ()) -> SnapshotRef:
    """'full-9': a full snapshot of epoch 9."""
    kind, _, epoch = name.partition("-")
    kinds: dict[str, SnapshotKind] = {"full": "full", "delta": "delta", "native": "native"}
    return SnapshotRef(name, length, 0, int(epoch), kinds[kind], (0, 1), tuple(NativeFile(f, 1, 0) for f in files))


def manifest(epoch: int, *snapshots: str | SnapshotRef, job: str = "job", place: tuple[int, int] = PLACE) -> Manifest:
    chain = [snapshot(each) if isinstance(each, str) else each for each in snapshots]
    return Manifest(job, job, epoch, 1, 0, 0, "p", 1, partitions=[PartitionRecord(*place, chain)])


def repaired(wanted: Manifest, *retained: Manifest, damaged: str) -> list[str] | None:
    chain = wanted.partitions[0].snapshots
    found = another_chain(chain, PLACE, set(damaged.split()), [wanted, *retained])
    return None if found is None else [ref.name for ref in found]


OLD = manifest(10, "full-2", "delta-5", "delta-9")
NEW = manifest(14, "full-9", "delta-11", "delta-14")


def test_the_deltas_before_a_full_snapshot_stand_in_for_it() -> None:
    assert repaired(NEW, OLD, damaged="full-9") == ["full-2", "delta-5", "delta-9", "delta-11", "delta-14"]


def test_a_full_snapshot_stands_in_for_the_chain_before_it() -> None:
    for damaged in ("full-2", "delta-5", "delta-9", "full-2 delta-9"):
        assert repaired(OLD, NEW, damaged=damaged) == ["full-9"]


def test_a_file_that_only_one_chain_has_cannot_be_replaced() -> None:
    assert repaired(NEW, OLD, damaged="delta-14") is None
    assert repaired(NEW, OLD, damaged="delta-11") is None
    assert repaired(NEW, OLD, damaged="full-9 delta-5") is None
    assert repaired(NEW, damaged="full-9") is None


def test_a_full_snapshot_of_a_later_epoch_is_another_state() -> None:
    assert repaired(manifest(10, "full-2", "delta-9"), manifest(14, "full-11", "delta-14"), damaged="delta-9") is None


def test_chains_with_a_gap_between_them_are_not_joined() -> None:
    """Of what changed after epoch 8 only 'full-9' tells; a delta of epoch 9 is in no retained manifest."""
    assert repaired(NEW, manifest(8, "full-2", "delta-8"), damaged="full-9") is None


def test_an_epoch_without_changes_is_bridged() -> None:
    """Manifest 10 says that nothing changed after epoch 9."""
    after = manifest(12, "full-10", "delta-12")
    assert repaired(after, OLD, damaged="full-10") == ["full-2", "delta-5", "delta-9", "delta-12"]
    assert repaired(after, manifest(9, "full-2", "delta-9"), damaged="full-10") is None


def test_a_damaged_file_of_a_native_snapshot_damages_every_snapshot_that_shares_it() -> None:
    first, second = snapshot("native-3", files=["a.sst"]), snapshot("native-9", files=["a.sst", "b.sst"])
    old, new = manifest(9, first, "delta-6", "delta-9"), manifest(11, second, "delta-11")
    assert repaired(new, old, damaged="b.sst") == ["native-3", "delta-6", "delta-9", "delta-11"]
    assert repaired(new, old, damaged="a.sst") is None


def test_of_several_ways_the_shortest_to_read_is_taken() -> None:
    middle = manifest(11, snapshot("full-8", length=11), "delta-9", "delta-11")
    assert repaired(NEW, OLD, middle, damaged="full-9") == ["full-8", "delta-9", "delta-11", "delta-14"]
    large = manifest(11, snapshot("full-8", length=21), "delta-9", "delta-11")
    assert repaired(NEW, OLD, large, damaged="full-9") == ["full-2", "delta-5", "delta-9", "delta-11", "delta-14"]


def test_other_partitions_and_other_jobs_do_not_matter() -> None:
    elsewhere = manifest(10, "full-2", "delta-5", "delta-9", place=(1, 1))
    assert repaired(NEW, elsewhere, damaged="full-9") is None
    assert repaired(NEW, manifest(10, "full-2", "delta-5", "delta-9", job="other"), damaged="full-9") is None


def test_nothing_is_said_about_a_chain_that_no_manifest_has() -> None:
    assert another_chain([snapshot("full-9")], PLACE, {"full-9"}, [OLD, NEW]) is None
    assert another_chain([], PLACE, set(), [OLD, NEW]) is None


# --- any history


@dataclass
class History:
    """A job that knows what its snapshots really hold. A state is the sequence of all changes that led to it."""

    state: tuple[int, ...] = ()
    chain: list[SnapshotRef] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    states: dict[int, tuple[int, ...]] = field(default_factory=dict)  # {epoch: state}
    holds: dict[str, tuple[int, ...]] = field(default_factory=dict)  # {full: state}
    leads: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)  # {delta: (from, to)}
    late: SnapshotRef | None = None

    def checkpoint(self, epoch: int, what: str) -> None:
        before = self.state
        if what == "rescaled":  # other keys than before: nothing of the old state
            self.state, self.chain, self.late = (-epoch,), [snapshot(f"full-{epoch}")], None
            self.holds[f"full-{epoch}"] = self.state
        elif what != "nothing":
            self.state = (*before, epoch)
            self.chain = [*self.chain, snapshot(f"delta-{epoch}")]
            self.leads[f"delta-{epoch}"] = (before, self.state)
        if self.late is not None:  # it was begun at an earlier checkpoint, and is done now
            full, self.late = self.late, None
            self.chain = [full, *(ref for ref in self.chain if ref.epoch > full.epoch)]
        if what == "full" and self.chain[0].epoch != epoch:
            self.late = snapshot(f"full-{epoch}")
            self.holds[self.late.name] = self.state
        self.states[epoch] = self.state
        self.manifests.append(manifest(epoch, *self.chain))

    def load(self, chain: Sequence[SnapshotRef]) -> tuple[int, ...] | None:
        """What comes out of loading a chain; None if a delta does not belong where it is."""
        state: tuple[int, ...] = ()
        for ref in chain:
            if ref.name in self.holds:
                state = self.holds[ref.name]
            elif self.leads[ref.name][0] != state:
                return None
            else:
                state = self.leads[ref.name][1]
        return state

    def reachable(self, refs: set[str]) -> set[tuple[int, ...]]:
        """All states that can be made of `refs`, in whatever way."""
        states = {self.holds[name] for name in refs if name in self.holds} | {()}
        for name in sorted((name for name in refs if name in self.leads), key=lambda name: self.leads[name][1][-1]):
            if self.leads[name][0] in states:
                states.add(self.leads[name][1])
        return states


EVENTS = st.sampled_from(["change", "change", "change", "full", "full", "nothing", "rescaled"])


@given(st.lists(EVENTS, min_size=2, max_size=14), st.data())
def test_what_is_found_is_the_same_state_and_nothing_is_overlooked(events: list[str], data: st.DataObject) -> None:
    history = History()
    for number, what in enumerate(["change", *events]):
        history.checkpoint(2 * number, what)
    chosen = st.lists(st.sampled_from(history.manifests), min_size=1, unique_by=lambda each: each.epoch)
    retained = data.draw(chosen, label="retained")
    wanted = data.draw(st.sampled_from(retained), label="wanted")
    names = sorted({name for each in retained for name in each.snapshot_names()})
    damaged = data.draw(st.sets(st.sampled_from(names), max_size=3), label="damaged")
    found = another_chain(wanted.partitions[0].snapshots, PLACE, damaged, retained)
    state = history.states[wanted.epoch]
    if found is not None:
        assert damaged.isdisjoint(ref.name for ref in found)
        assert history.load(found) == state
    elif "nothing" not in events:  # else two chains may have one state without any manifest that says so
        assert state not in history.reachable(set(names) - damaged)
