"""Several drivers on one directory: whatever the order of their steps, every record is committed exactly once.

The drivers are threads that take turns at every single operation on the storage, in an order drawn from a seed: so a
driver sleeps at any point for as long as the others like, and wakes up in the middle of what it was doing.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import read_sections, write_snapshot
from headwater.checkpoint.start.claims import DriverClaim
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError, StorageError
from headwater.state.snapshot.section import Section
from tests.unit.checkpoint.dict_storage import DictStorage, Perform

SEEDS = 400


class Turns:
    """Lets one thread at a time do one step; a seed says whose it is."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self._condition = threading.Condition()
        self._waiting: list[str] = []
        self._alive: set[str] = set()
        self._next: str | None = None
        self._last = ""
        self._patience = random_.choice([0.0, 0.5, 0.8, 0.9, 0.95])
        """How likely it is that who had the last turn has the next one: long sleeps of the others."""

    def join(self, name: str) -> None:
        self._alive.add(name)

    def leave(self, name: str) -> None:
        with self._condition:
            self._alive.discard(name)
            self._choose()

    def step(self, name: str) -> None:
        with self._condition:
            self._waiting.append(name)
            self._choose()
            self._condition.wait_for(lambda: self._next == name)
            self._next = None
            self._waiting.remove(name)

    def _choose(self) -> None:
        if self._next is None and self._waiting and len(self._waiting) == len(self._alive):
            if self._last not in self._waiting or self._random.random() >= self._patience:
                self._last = self._random.choice(sorted(self._waiting))
            self._next = self._last
            self._condition.notify_all()


class World:
    """The storage, the sink and the drivers that were ever started on them."""

    def __init__(self, seed: int, *, failures: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.failures = failures
        self.turns = Turns(self.random)
        self.storage = DictStorage()
        self.committed: dict[str, list[int]] = {}
        """{transaction: records}. Committing one twice is allowed."""
        self.fenced: list[str] = []
        self.problems: list[BaseException] = []

    def around(self, name: str) -> Any:
        def around(operation: str, file: str, perform: Perform) -> object:
            self.turns.step(name)
            if operation in ("write_once", "write") and self.random.random() < self.failures:
                if self.random.random() < 0.5:
                    perform()  # it was done, but the answer was lost
                raise StorageError("the store is down")
            return perform()

        return around

    def drive(self, name: str, checkpoints: int) -> None:
        try:
            Driver(self, name).run(checkpoints)
        except FencedError:
            self.fenced.append(name)
        except StorageError:
            pass  # while it took over: it ends
        except BaseException as problem:
            self.problems.append(problem)
        finally:
            self.turns.leave(name)

    def run(self, drivers: int, checkpoints: int) -> None:
        threads = []
        for number in range(drivers):
            name = f"driver{number}"
            self.turns.join(name)
            threads.append(threading.Thread(target=self.drive, args=(name, checkpoints)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if self.problems:
            raise self.problems[0]

    def check(self) -> Manifest | None:
        """A last driver comes: it finds a history in which each record was committed once, and all its files."""
        layout = CheckpointLayout(self.storage)
        store = ManifestStore(layout)
        latest = store.take_over("job")
        if latest is None:
            assert not self.committed, "output of a history that is gone"
            return None
        commit(self.committed, latest)
        records = Counter(record for records in self.committed.values() for record in records)
        assert records == Counter(range(latest.counters["position"])), "lost or repeated output"
        for ref in latest.partitions[0].snapshots:
            assert [section.name for section in read_sections(layout.snapshot(ref.name), ref)] == ["state"]
        return latest


class Driver:
    """As the coordinator: an epoch reads records, a checkpoint gets its manifest, and then its output is committed."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.layout = CheckpointLayout(world.storage.sharing(world.around(name)))
        self.store = ManifestStore(self.layout)

    def run(self, checkpoints: int) -> None:
        latest = self.store.take_over("job")
        if latest is not None:
            commit(self.world.committed, latest)
        uncommitted: list[int] = []
        position = latest.counters["position"] if latest is not None else 0
        epoch = latest.epoch if latest is not None else -1
        for number in range(checkpoints):
            epoch += self.world.random.randint(1, 3)
            read = list(range(position, position + self.world.random.randint(1, 3)))
            position += len(read)
            chain = list(latest.partitions[0].snapshots) if latest is not None else []
            manifest = self.manifest(epoch, position, uncommitted + read, f"{self.name}-{number}", chain)
            if manifest is None:
                uncommitted += read
                continue
            try:
                self.store.write(manifest)
            except FencedError:
                raise
            except CheckpointError:
                uncommitted += read
                if self.world.random.random() < 0.5:  # the job loses state and goes back to its last checkpoint
                    position, uncommitted = latest.counters["position"] if latest is not None else 0, []
                    epoch = latest.epoch if latest is not None else -1
                continue
            commit(self.world.committed, manifest)
            latest, uncommitted = manifest, []
            self.store.collect_garbage(keep=2)

    def manifest(self, epoch: int, position: int, output: list[int], token: str, chain: list[Any]) -> Manifest | None:
        header = {"epoch": epoch, "kind": "delta", "key_groups": (0, 1)}
        path = self.layout.new_snapshot(1, 0, epoch, token, "delta")
        try:
            ref = write_snapshot(path, header, [Section("op", "keyed", "state", 0, token.encode())])
        except StorageError:
            return None
        return Manifest(
            "id", "job", epoch, 1, 0, 0, "f", 1,
            partitions=[PartitionRecord(1, 0, [*chain, ref])],
            committables={"sink": [token.encode(), bytes(output)]},
            counters={"position": position},
        )  # fmt: skip


def commit(committed: dict[str, list[int]], manifest: Manifest) -> None:
    token, output = manifest.committables["sink"]
    committed[token.decode()] = list(output)


@pytest.mark.parametrize("drivers", [2, 3])
def test_in_any_order_of_steps_each_record_is_committed_once(drivers: int) -> None:
    fenced = 0
    for seed in range(SEEDS):
        world = World(seed)
        world.run(drivers, checkpoints=3)
        world.check()
        fenced += len(world.fenced)
    assert fenced > SEEDS // 2  # they did meet


def test_the_same_while_writes_fail_and_answers_get_lost() -> None:
    completed = 0
    for seed in range(SEEDS):
        world = World(seed, failures=0.15)
        world.run(2, checkpoints=4)
        world.failures = 0.0
        completed += world.check() is not None
    assert completed > SEEDS // 2


def broken_worlds(failures: float = 0.0) -> int:
    broken = 0
    for seed in range(SEEDS):
        world = World(seed, failures=failures)
        try:
            world.run(2, checkpoints=3)
            world.failures = 0.0
            world.check()
        except (AssertionError, CheckpointError):
            broken += 1
    return broken


def test_without_looking_for_a_higher_claim_the_check_above_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DriverClaim, "check", lambda self: self.record.number + 1)
    assert broken_worlds()


def test_without_a_new_claim_after_a_doubtful_write_the_check_above_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DriverClaim, "renew", lambda self: self)
    monkeypatch.setattr(DriverClaim, "set_base", lambda self, manifest: None)
    assert broken_worlds(failures=0.15)


class TestADriverThatWakesUpInTheMiddleOfAWrite:
    """It had looked for a higher claim, fell asleep, and writes its manifest after another driver has taken over."""

    def sleeper(self, storage: DictStorage, meanwhile: Callable[[], None]) -> ManifestStore:
        def around(operation: str, name: str, perform: Perform) -> object:
            if operation == "write_once" and name.endswith("000000000007.manifest"):
                meanwhile()
            return perform()

        return ManifestStore(CheckpointLayout(storage.sharing(around)))

    def test_its_manifest_does_not_count_and_is_replaced(self) -> None:
        storage = DictStorage()
        second = ManifestStore(CheckpointLayout(storage))
        first = self.sleeper(storage, lambda: second.take_over("job"))
        first.take_over("job")
        first.write(manifest(6))
        with pytest.raises(FencedError):
            first.write(manifest(7))
        reader = ManifestStore(CheckpointLayout(storage))
        latest = reader.latest()
        assert latest is not None and latest.epoch == 6
        assert (reader.epochs(), second.epochs()) == ([6], [6])
        second.write(manifest(7))
        latest = reader.latest()
        assert latest is not None and (latest.epoch, latest.claim) == (7, 2)

    def test_what_it_wrote_before_the_other_one_read_is_what_the_other_one_goes_on_from(self) -> None:
        storage = DictStorage()
        second = ManifestStore(CheckpointLayout(storage))
        found: list[Manifest | None] = []

        def around(operation: str, name: str, perform: Perform) -> object:
            result = perform()
            if operation == "write_once" and name.endswith(".manifest"):
                found.append(second.take_over("job"))
            return result

        first = ManifestStore(CheckpointLayout(storage.sharing(around)))
        first.take_over("job")
        with pytest.raises(FencedError):
            first.write(manifest(7))
        assert found[0] is not None and (found[0].epoch, found[0].claim) == (7, 1)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("failing", ["000000000002.claim", "000000000002.base"])
def test_a_driver_does_not_fence_itself_when_the_store_fails_while_it_claims_again(failing: str, after: bool) -> None:
    storage = DictStorage()
    down = ["000000000007.manifest", failing]

    def around(operation: str, name: str, perform: Perform) -> object:
        if operation == "write_once" and down and name.endswith(down[0]):
            del down[0]
            if after:
                perform()
            raise StorageError("the store is down")
        return perform()

    store = ManifestStore(CheckpointLayout(storage.sharing(around)))
    store.take_over("job")
    store.write(manifest(6))
    while down:
        with pytest.raises(StorageError):
            store.write(manifest(7))
    store.write(manifest(8))
    latest = ManifestStore(CheckpointLayout(storage)).latest()
    assert latest is not None and latest.epoch == 8
    assert ManifestStore(CheckpointLayout(storage)).epochs() == [6, 8], "the doubtful one counts"
    ManifestStore(CheckpointLayout(storage)).take_over("job")
    with pytest.raises(FencedError):
        store.write(manifest(9))


class TestWhatTheLoserIsTold:
    def test_who_took_over(self, tmp_path: Path) -> None:
        layout = CheckpointLayout(tmp_path)
        first, second = ManifestStore(layout), ManifestStore(layout)
        first.take_over("orders")
        second.take_over("orders")
        with pytest.raises(
            FencedError, match=r"job 'orders' was started again on .*by pid \d+ on host .*\(claim 2, run"
        ):
            first.write(manifest(1))
        assert second.latest() is None
        second.write(manifest(1))

    def test_a_fenced_driver_deletes_nothing(self, tmp_path: Path) -> None:
        layout = CheckpointLayout(tmp_path)
        first = ManifestStore(layout)
        first.take_over("orders")
        for epoch in range(3):
            first.write(manifest(epoch))
        ManifestStore(layout).take_over("orders")
        with pytest.raises(FencedError):
            first.collect_garbage(keep=1)
        assert ManifestStore(layout).epochs() == [0, 1, 2]

    def test_a_directory_from_before_claims_goes_on(self, tmp_path: Path) -> None:
        layout = CheckpointLayout(tmp_path)
        layout.create()
        ManifestStore(layout).write(manifest(4))
        store = ManifestStore(layout)
        latest = store.take_over("orders")
        assert latest is not None and (latest.epoch, latest.claim) == (4, 0)
        store.write(manifest(5))
        assert ManifestStore(layout).epochs() == [4, 5]

    def test_a_damaged_base_is_not_guessed_at(self, tmp_path: Path) -> None:
        layout = CheckpointLayout(tmp_path)
        ManifestStore(layout).take_over("orders")
        path = tmp_path / "claims" / "000000000001.base"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(CheckpointError, match=r"000000000001\.base is damaged"):
            ManifestStore(layout).latest()


class TestADirectoryThatCannotBeRead:
    """It is not known whether another driver has taken over: an error of ours, which a later checkpoint survives."""

    def test_the_claims_cannot_be_looked_for(self) -> None:
        storage = DictStorage()
        broken = ""

        def around(operation: str, name: str, perform: Perform) -> object:
            if f"{operation}:{name}" == broken:
                raise PermissionError(13, "Permission denied", name)
            return perform()

        claim = DriverClaim.take(storage.sharing(around), "orders")
        broken = "size:claims/000000000002.claim"
        with pytest.raises(CheckpointError, match=r"dict://job/claims/000000000002\.claim cannot be looked for: Perm"):
            claim.check()
        broken = ""
        assert claim.check() == 2

    def test_the_claims_cannot_be_listed(self, tmp_path: Path) -> None:
        (tmp_path / "claims").write_text("not a directory")
        with pytest.raises(CheckpointError, match=r"/claims cannot be listed: Not a directory; whether another driver"):
            DriverClaim.take(CheckpointLayout(tmp_path).storage, "orders")

    def test_the_checkpoint_has_failed_and_the_next_one_counts(self, tmp_path: Path) -> None:
        layout = CheckpointLayout(tmp_path)
        store = ManifestStore(layout)
        store.take_over("orders")
        store.write(manifest(0))
        (tmp_path / "claims").rename(tmp_path / "away")
        (tmp_path / "claims").write_text("not a directory")
        with pytest.raises(CheckpointError, match=r"000000000002\.claim cannot be looked for: Not a directory"):
            store.write(manifest(1))
        (tmp_path / "claims").unlink()
        (tmp_path / "away").rename(tmp_path / "claims")
        store.write(manifest(1))
        assert ManifestStore(layout).epochs() == [0, 1]


def manifest(epoch: int) -> Manifest:
    return Manifest("id", "job", epoch, 1, 0, 0, "f", 1)


def claim_in_a_process(directory: str, claims: int, results: Any) -> None:
    storage = CheckpointLayout(directory).storage
    results.put([DriverClaim.take(storage, "job").record.number for _ in range(claims)])


def test_processes_that_race_for_claims_get_different_ones_without_gaps(tmp_path: Path) -> None:
    CheckpointLayout(tmp_path).create()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=claim_in_a_process, args=(str(tmp_path), 20, results)) for _ in range(4)]
    for process in processes:
        process.start()
    taken = [number for _ in processes for number in results.get(timeout=60)]
    for process in processes:
        process.join()
    assert sorted(taken) == list(range(1, 81))
