"""How the list state of an operator is dealt out when the number of its partitions changes. Pure.

As in Flink, the lists of all old partitions are joined in the order of the partitions, and the elements are dealt
round robin: element j goes to partition j mod n. Every element has exactly one new owner. Broadcast state needs none
of this: every partition has the same, so a new partition takes it from any old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.common.errors import StateError
from headwater.state.descriptors import ListStateDescriptor
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.section import OPERATOR, Section

Chain = Iterable[Section]
"""The OPERATOR sections of one operator in one old partition, oldest first."""


def deal_list_state(chains: Sequence[Chain], uid: str, partition: int, parallelism: int) -> list[Section]:
    """The sections of operator `uid` that new partition `partition` of `parallelism` loads.

    `chains` are those of *all* old partitions in their order. The sections may bear an older uid; those returned bear
    `uid`. A state of which nothing falls to this partition has no section.
    """
    if not 0 <= partition < parallelism:
        raise StateError(f"operator '{uid}' has no partition {partition}: it has {parallelism}, counted from 0")
    dealt = OperatorStateBackend(uid)
    for name, elements in joined_lists(chains).items():
        mine = elements[partition::parallelism]
        if mine:
            dealt.get_list_state(ListStateDescriptor(name)).update(mine)
    return list(dealt.full_sections())


def joined_lists(chains: Iterable[Chain]) -> Mapping[str, list[Any]]:
    """{state name: elements of all partitions, in the order of the partitions}."""
    joined: dict[str, list[Any]] = {}
    for chain in chains:
        for name, elements in _lists(chain).items():
            joined.setdefault(name, []).extend(elements)
    return joined


def _lists(chain: Chain) -> dict[str, list[Any]]:
    """What one old partition held: its sections are changes on changes, so they are loaded one after another."""
    old: OperatorStateBackend | None = None
    names: dict[str, None] = {}
    for section in chain:
        if section.kind != OPERATOR:
            raise StateError(
                f"state '{section.name}' of operator '{section.uid}' is of kind '{section.kind}'; only list state of "
                f"operators ('{OPERATOR}') is dealt out"
            )
        if old is None:
            old = OperatorStateBackend(section.uid)
        old.load_section(section)
        names[section.name] = None
    if old is None:
        return {}
    return {name: list(old.get_list_state(ListStateDescriptor(name)).get()) for name in names}
