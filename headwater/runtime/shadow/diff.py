"""Compares the output of two shadow runs, sink by sink, up to where both have read the same input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import HeadwaterError
from headwater.runtime.shadow.run import ShadowRun
from headwater.runtime.shadow.sink import diverted_records


@dataclass(frozen=True)
class DifferingRecord:
    """A record that one run wrote more often than the other."""

    epoch: int
    """The epoch in which it was written first."""
    text: str
    times: int


@dataclass(frozen=True)
class SinkDifference:
    """One sink's output in both runs. A count is None if that program has no such sink."""

    uid: str
    old: int | None
    new: int | None
    only_old: tuple[DifferingRecord, ...]
    only_new: tuple[DifferingRecord, ...]

    @property
    def same(self) -> bool:
        return self.old is not None and self.new is not None and not self.only_old and not self.only_new


@dataclass(frozen=True)
class Stand:
    """The point up to which the output of a run is compared."""

    epoch: int
    records: int
    """Number of records read since the fork."""
    finished: bool
    """The input has ended there."""


def last_stand(run: ShadowRun, fork: Manifest) -> Stand:
    """Return where a single run was when it stopped."""
    store = ManifestStore(CheckpointLayout(run.checkpoints))
    epochs = _epochs(store, run)
    if not epochs:
        raise HeadwaterError("the run completed no epoch; give it more time")
    return _stand(store.load(epochs[-1]), fork)


def common_stand(old: ShadowRun, new: ShadowRun, fork: Manifest) -> Stand:
    """Return the last epoch after which both runs had read exactly the same. Raises HeadwaterError if there is none."""
    stores = [ManifestStore(CheckpointLayout(run.checkpoints)) for run in (old, new)]
    epochs = set(_epochs(stores[0], old)) & set(_epochs(stores[1], new))
    difference = "they have no checkpoint of the same epoch; run more of them"
    for epoch in sorted(epochs, reverse=True):
        first, second = (store.load(epoch) for store in stores)
        found = _input_difference(stores[0].layout, first, stores[1].layout, second)
        if found is None:
            return _stand(first, fork)
        difference = found
    raise HeadwaterError(
        f"the two runs did not read the same input, so their output cannot be compared: {difference}. Compare on input "
        "that does not change meanwhile, and less of it (--epochs, --epoch-records)"
    )


def compare_sinks(old: ShadowRun, new: ShadowRun, upto: int) -> list[SinkDifference]:
    """Compare what each sink of either program got up to epoch `upto`, as multisets: order does not count."""
    in_old, in_new = set(old.sinks()), set(new.sinks())
    found = []
    for uid in sorted(in_old | in_new):
        before, after = _written(old.output, uid, upto), _written(new.output, uid, upto)
        found.append(
            SinkDifference(
                uid,
                before.counts.total() if uid in in_old else None,
                after.counts.total() if uid in in_new else None,
                before.beyond(after),
                after.beyond(before),
            )
        )
    return found


def first_records(run: ShadowRun, uid: str, upto: int, most: int) -> tuple[int, list[DifferingRecord]]:
    """Return how many records a sink got, and the first ones."""
    written = _written(run.output, uid, upto)
    return written.counts.total(), list(written.beyond(_Written())[:most])


class _Written:
    """A sink's output as a multiset, with the first epoch of each record."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def add(self, epoch: int, texts: Sequence[str]) -> None:
        self.counts.update(texts)
        for text in texts:
            self._first.setdefault(text, epoch)

    def beyond(self, other: _Written) -> tuple[DifferingRecord, ...]:
        """Return the records that are here more often than in `other`, in the order of epochs."""
        more = self.counts - other.counts
        records = (DifferingRecord(self._first[text], text, times) for text, times in more.items())
        return tuple(sorted(records, key=lambda record: (record.epoch, record.text)))


def _written(directory: Path, uid: str, upto: int) -> _Written:
    written = _Written()
    for epoch, texts in diverted_records(directory, uid):
        if epoch <= upto:
            written.add(epoch, texts)
    return written


def _epochs(store: ManifestStore, run: ShadowRun) -> list[int]:
    """Return the epochs of a run that have a checkpoint, up to the requested number of epochs."""
    last = None if run.epochs is None else run.fork_epoch + run.epochs
    epochs = [int(epoch) for epoch in store.epochs() if epoch > run.fork_epoch]
    # No checkpoint is cut while another is in flight. If none is within the limit, take the next one.
    within = [epoch for epoch in epochs if last is None or epoch <= last]
    return within or epochs[:1]


def _stand(manifest: Manifest, fork: Manifest) -> Stand:
    records = manifest.counters.get("records_in", 0) - fork.counters.get("records_in", 0)
    return Stand(manifest.epoch, records, manifest.finished)


def _input_difference(
    old_layout: CheckpointLayout, old: Manifest, new_layout: CheckpointLayout, new: Manifest
) -> str | None:
    """Return what one of the two has read and the other has not; None if nothing. Ignores sources that only one has."""
    for uid in sorted(set(old.sources) & set(new.sources)):
        if _position(old_layout, old, uid) != _position(new_layout, new, uid):
            return f"after epoch {old.epoch} source '{uid}' stands at another place"
    if _spark_offsets(old_layout, old) != _spark_offsets(new_layout, new):
        return f"after epoch {old.epoch} Spark's offsets are not the same"
    if old.finished != new.finished:
        return f"the input ended with epoch {old.epoch} in one run only"
    return None


def _position(layout: CheckpointLayout, manifest: Manifest, uid: str) -> Any:
    record = manifest.sources[uid]
    finished = FinishedSplits.restore(layout, uid, record.finished_splits).ids()
    return {split_id: split.position for split_id, split in record.splits.items()}, finished, record.exhausted


def _spark_offsets(layout: CheckpointLayout, manifest: Manifest) -> list[str]:
    batch_id = manifest.spark.get("batch_id")
    if batch_id is None:
        return []
    path = layout.spark / "offsets" / str(batch_id)
    return path.read_text(encoding="utf-8").splitlines()[2:]  # after the version and the batch's time
