"""What a reader knows of one job: its operators, and where their slots are. Made from the driver's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from headwater.common.query_error import QueryError, QueryProblem, nearest
from headwater.state.keys.key_groups import key_group, partition_of_key_group

Json = dict[str, Any]


class Locator(Protocol):
    """How the driver of one job is reached: its control socket, or a job server. Raises `QueryError`."""

    def locate(self) -> Json:
        """Return the driver's answer to `locate_state`."""
        ...

    def ask_slot(self, stage: int, partition: int, request: Json) -> Json:
        """Ask a slot through the driver: for slots that cannot be reached from here."""
        ...

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> Json:
        """Return the driver's answer to `read_archive`: closed windows of a series."""
        ...


@dataclass(frozen=True)
class OperatorPlace:
    """One operator with keyed state."""

    uid: str
    name: str
    stage: int
    parallelism: int


@dataclass(frozen=True)
class SlotPlace:
    """One slot. A slot without a path and a port is asked through the driver."""

    stage: int
    partition: int
    host: str
    port: int
    path: str
    incarnation: str
    ready: bool


@dataclass(frozen=True)
class Locations:
    """A moment's knowledge. When a slot does not answer, ask for a new one."""

    job_id: str
    max_parallelism: int
    operators: tuple[OperatorPlace, ...]
    slots: dict[tuple[int, int], SlotPlace]
    secret: bytes | None

    @classmethod
    def of(cls, answer: Json) -> Locations:
        slots = [SlotPlace(**{name: slot[name] for name in SlotPlace.__dataclass_fields__}) for slot in answer["slots"]]
        fields = OperatorPlace.__dataclass_fields__
        return cls(
            answer["job_id"],
            answer["max_parallelism"],
            tuple(OperatorPlace(**{name: each[name] for name in fields}) for each in answer["operators"]),
            {(slot.stage, slot.partition): slot for slot in slots},
            None if answer["secret"] is None else bytes.fromhex(answer["secret"]),
        )

    def operator(self, named: str) -> OperatorPlace:
        """Return the operator with that uid, or with that name if there is just one."""
        by_uid = [each for each in self.operators if each.uid == named]
        found = by_uid or [each for each in self.operators if each.name == named]
        if len(found) == 1:
            return found[0]
        if found:
            uids = ", ".join(each.uid for each in found)
            raise QueryError(
                QueryProblem.UNKNOWN_OPERATOR, f"several operators have the name '{named}'; use a uid: {uids}"
            )
        names = [*(each.uid for each in self.operators), *(each.name for each in self.operators)]
        raise QueryError(
            QueryProblem.UNKNOWN_OPERATOR,
            f"the job has no operator '{named}' with keyed state; {nearest(named, names)}",
        )

    def partition_of(self, operator: OperatorPlace, key: Any) -> int:
        group = key_group(key, self.max_parallelism)
        return partition_of_key_group(group, self.max_parallelism, operator.parallelism)

    def slots_of(self, operator: OperatorPlace) -> list[SlotPlace]:
        """Return all slots of the operator. Raises `QueryError` RESTORING if one is missing."""
        return [self.slot(operator.stage, partition) for partition in range(operator.parallelism)]

    def slot(self, stage: int, partition: int) -> SlotPlace:
        found = self.slots.get((stage, partition))
        if found is None or not found.ready:
            raise QueryError(
                QueryProblem.RESTORING,
                f"partition {partition} of stage {stage} has no slot that may answer now: it is started, or restored",
                0.2,
            )
        return found
