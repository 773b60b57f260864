"""What can go wrong, and where. A plan of faults is drawn from a seed; each fires once, at the n-th visit of its site.

A site is a named step of an epoch, or an operation on a kind of file ('write:snapshots'). How often each is visited is
known from a run without faults, so that nearly every fault of a plan does fire.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ATTEMPT_STARTED = "attempt-started"
SOURCE_READ = "source-read"
EPOCH_ACKED = "epoch-acked"
CUT_IN_FLIGHT = "cut-in-flight"
"""An attempt begins beside a checkpoint that is not complete."""
FULL_IN_FLIGHT = "full-in-flight"
"""The same, and a partition has handed in a full snapshot of that checkpoint's state."""
FIRST_IN_FLIGHT = "first-in-flight"
"""The same, and the job began with the state of another: it has no checkpoint of its own yet."""
BESIDE_CHECKPOINT = (CUT_IN_FLIGHT, FULL_IN_FLIGHT, FIRST_IN_FLIGHT)

IN_SLOT = ("chunk-received", "mid-chunk", "processed", "snapshot-written", "acked")
IN_COMPLETION = ("manifest-written", "sink-committed")
NAMED_STEPS = (ATTEMPT_STARTED, SOURCE_READ, *IN_SLOT, EPOCH_ACKED, *BESIDE_CHECKPOINT, *IN_COMPLETION)

WRITES = ("write:snapshots", "write_once:manifests", "write_once:claims", "write:NEWEST", "write:COMMITTED")
LOOKS = ("list:claims", "list:manifests", "list:snapshots", "read:claims", "read:manifests", "size:claims")
READS = ("read:snapshots", "read:COMMITTED", "read:NEWEST")
"""Only when a job resumes."""
DELETIONS = ("delete:snapshots", "delete:manifests")
STORE = (*WRITES, *LOOKS, *READS, *DELETIONS)

KINDS: Mapping[str, tuple[str, ...]] = {
    "slot-crash": (ATTEMPT_STARTED, *IN_SLOT, *IN_COMPLETION, "write:snapshots"),
    "slot-crash-beside-checkpoint": BESIDE_CHECKPOINT,
    "slot-zombie": ("mid-chunk", "processed", "snapshot-written"),
    "worker-crash": (SOURCE_READ, "chunk-received", "mid-chunk", "processed"),
    "lost-ack": ("snapshot-written", "acked", EPOCH_ACKED),
    "duplicate-attempt": (ATTEMPT_STARTED, "acked"),
    "driver-crash": (*NAMED_STEPS, *STORE),
    "driver-zombie": (*NAMED_STEPS, *STORE),
    "store-error": STORE,
    "lost-answer": (*WRITES, *DELETIONS),
    "torn-write": WRITES,
    "slow-store": WRITES,
    "store-down": STORE,
    "savepoint": (ATTEMPT_STARTED,),
    "rescale": (ATTEMPT_STARTED,),
    "stop-and-restore": (ATTEMPT_STARTED,),
    "restart-rescaled": (ATTEMPT_STARTED, *IN_COMPLETION),
    "clock-back": (ATTEMPT_STARTED, EPOCH_ACKED),
    "clock-ahead": (ATTEMPT_STARTED, EPOCH_ACKED),
}
"""{kind: where it can happen}"""

TOGETHER: Mapping[int, tuple[str, ...]] = {
    3: ("slot-crash-beside-checkpoint",) * 3,
    7: ("stop-and-restore", *("slot-crash-beside-checkpoint",) * 3),
}
"""{last digit of a seed: what it gets beside its own faults}: things that hardly ever come together by chance."""

RESTARTS = frozenset({"driver-crash", "driver-zombie", "restart-rescaled"})
MOST_FAULTS = 6


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong."""

    kind: str
    site: str
    visit: int
    """Fires when the site is visited for the n-th time."""

    def __str__(self) -> str:
        return f"{self.kind} at {self.site} #{self.visit}"


def draw_faults(seed: int, visits: Mapping[str, int], more: Sequence[str] = ()) -> list[Fault]:
    """The faults of a seed, for a job that visits each site so often; and then one of each kind in `more`."""
    drawn = random.Random(f"faults-{seed}")
    kinds = [drawn.choice(sorted(KINDS)) for _ in range(drawn.randint(1, MOST_FAULTS))]
    faults: list[Fault] = []
    for kind in (*kinds, *more):
        restarts = any(fault.kind in RESTARTS for fault in faults)
        # How often a checkpoint lasts longer than its epoch depends on the seed more than on the job.
        always = (*BESIDE_CHECKPOINT, *READS) if restarts else BESIDE_CHECKPOINT
        sites = [site for site in KINDS[kind] if visits.get(site) or site in always]
        site = drawn.choice(sites)
        most = 1 if site in BESIDE_CHECKPOINT else max(visits.get(site, 0), 1)
        faults.append(Fault(kind, site, drawn.randint(1, most)))
    return faults


class FaultPlan:
    """Counts visits and says which faults are due."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.fired: list[Fault] = []
        self.visits: Counter[str] = Counter()
        self._left = list(faults)

    def visit(self, site: str) -> Fault | None:
        """The site is reached once more: what happens there now. Of several faults the rest waits for the next."""
        self.visits[site] += 1
        for fault in self._left:
            if fault.site == site and self.visits[site] >= fault.visit:
                self._left.remove(fault)
                self.fired.append(fault)
                return fault
        return None
