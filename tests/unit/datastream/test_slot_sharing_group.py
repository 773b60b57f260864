from __future__ import annotations

import pytest

from headwater.datastream import MemorySize, SlotSharingGroup, StreamExecutionEnvironment
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings


def test_a_group_remembers_what_it_asks_for():
    group = (
        SlotSharingGroup.builder("heavy")
        .set_cpu_cores(1.5)
        .set_task_heap_memory_mb(100)
        .set_task_off_heap_memory(MemorySize.of_mebi_bytes(5))
        .set_managed_memory_mb(2048)
        .set_external_resource("gpu", 1.0)
        .set_external_resource("fpga", 2.0)
        .build()
    )
    assert group.get_name() == "heavy"
    assert group.get_cpu_cores() == 1.5
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(100)
    assert group.get_task_off_heap_memory().get_kibi_bytes() == 5 * 1024
    assert (group.get_managed_memory().get_gibi_bytes(), group.get_managed_memory().get_tebi_bytes()) == (2, 0)
    assert group.get_external_resources() == {"gpu": 1.0, "fpga": 2.0}


def test_it_is_accepted_with_a_warning():
    forget_warnings()
    env = StreamExecutionEnvironment.get_execution_environment()
    group = SlotSharingGroup.builder("heavy").build()
    with pytest.warns(NoEffectWarning, match="slot_sharing_group"):
        env.from_collection([1]).map(str).slot_sharing_group(group)
