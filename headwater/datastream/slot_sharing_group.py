"""Groups of operators that share slots, as PyFlink describes them. Accepted, without effect: Spark places tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

_MEBI = 2**20


@dataclass(frozen=True)
class MemorySize:
    """A number of bytes."""

    number_of_bytes: int

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(mebi_bytes * _MEBI)

    def get_bytes(self) -> int:
        return self.number_of_bytes

    def get_kibi_bytes(self) -> int:
        return self.number_of_bytes >> 10

    def get_mebi_bytes(self) -> int:
        return self.number_of_bytes >> 20

    def get_gibi_bytes(self) -> int:
        return self.number_of_bytes >> 30

    def get_tebi_bytes(self) -> int:
        return self.number_of_bytes >> 40

    def __str__(self) -> str:
        return f"{self.number_of_bytes} bytes"


@dataclass(frozen=True)
class SlotSharingGroup:
    """A name and the resources asked for."""

    _name: str
    _cpu_cores: float | None = None
    _task_heap_memory: MemorySize | None = None
    _task_off_heap_memory: MemorySize | None = None
    _managed_memory: MemorySize | None = None
    _external_resources: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        return self._name

    def get_cpu_cores(self) -> float | None:
        return self._cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        return self._task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        return self._task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        return self._managed_memory

    def get_external_resources(self) -> dict[str, float]:
        return dict(self._external_resources)

    class Builder:
        """Collects what a group asks for."""

        def __init__(self, name: str) -> None:
            self._group = SlotSharingGroup(name)

        def set_cpu_cores(self, cpu_cores: float) -> Self:
            return self._with(_cpu_cores=cpu_cores)

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> Self:
            return self._with(_task_heap_memory=task_heap_memory)

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> Self:
            return self._with(_task_heap_memory=MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> Self:
            return self._with(_task_off_heap_memory=task_off_heap_memory)

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> Self:
            return self._with(_task_off_heap_memory=MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> Self:
            return self._with(_managed_memory=managed_memory)

        def set_managed_memory_mb(self, managed_memory_mb: int) -> Self:
            return self._with(_managed_memory=MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> Self:
            return self._with(_external_resources=self._group.get_external_resources() | {name: value})

        def build(self) -> SlotSharingGroup:
            return self._group

        def _with(self, **changes: object) -> Self:
            self._group = replace(self._group, **changes)  # type: ignore[arg-type]
            return self
