"""Which keys have most of the records of an operator, from the slots' samples. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.epoch_counts import Key
from headwater.runtime.job.metrics.job_metrics import Snapshot
from headwater.runtime.job.vertices import Vertex

ENOUGH_RECORDS = 1_000
ENOUGH_SAMPLES = 200
SHOWN_SHARE = 0.01
MOST_SHOWN = 10


@dataclass(frozen=True)
class KeyShare:
    """A key's part of the records that its operator got lately. An estimate."""

    uid: str
    subtask: int
    key: str
    """As it is shown."""
    key_group: int
    share: float
    subtask_share: float
    """What the key's partition got of them, all its keys together."""


def key_shares(figures: Snapshot) -> Iterator[KeyShare]:
    """Yield the keys that stand out in the samples. Of few samples or few records, nothing is said."""
    for (uid, subtask), sampling in figures.key_samples.items():
        vertex = figures.graph.vertices[figures.graph.vertex_of[uid]]
        part, whole = recent_records(figures, vertex, subtask), recent_records(figures, vertex)
        if sampling.samples < ENOUGH_SAMPLES or whole < ENOUGH_RECORDS:
            continue
        for hot in sampling.keys:
            share = hot.hits / sampling.samples * part / whole
            yield KeyShare(uid, subtask, hot.key, hot.key_group, share, part / whole)


def hottest(figures: Snapshot, vertex: Vertex) -> list[dict[str, object]]:
    """Return the keys of a vertex that have one record in a hundred or more, the hottest first."""
    own = {operator.uid for operator in vertex.operators}
    found = [each for each in key_shares(figures) if each.uid in own and each.share >= SHOWN_SHARE]
    found.sort(key=lambda each: -each.share)
    return [
        {"operator": figures.graph.names[each.uid], "key": each.key, "share": each.share, "subtask": each.subtask}
        for each in found[:MOST_SHOWN]
    ]


def recent_records(figures: Snapshot, vertex: Vertex, subtask: int | None = None) -> float:
    """Return how many records came into a vertex lately, or into one of its partitions."""
    chosen = range(vertex.parallelism) if subtask is None else (subtask,)
    return sum(figures.recent.get(Key("subtask", vertex.id, each), {}).get(names.RECORDS_IN, 0.0) for each in chosen)
