"""Deals out the list state of an operator when the number of its partitions changes. Pure.

As in Flink, the lists of all old partitions are joined in the order of the partitions, and the elements are dealt
round robin: element j goes to partition j mod n. Every element has exactly one new owner. Broadcast state needs none
of this: every partition has the same, so a new partition takes it from any old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headwater.common.errors import StateError
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import OPERATOR, Section

Chain = Iterable[Section]
"""The OPERATOR sections of one operator in one old partition, oldest first."""


def deal_list_state(chains: Sequence[Chain], uid: str, partition: int, parallelism: int) -> list[Section]:
    """Return the sections of operator `uid` that new partition `partition` of `parallelism` loads.

    `chains` are those of *all* old partitions, in order. Their sections may have an older uid; the returned ones have
    `uid`. A state without elements for this partition has no section.
    """
    if not 0 <= partition < parallelism:
        raise StateError(f"operator '{uid}' has no partition {partition}: it has {parallelism}, counted from 0")
    dealt = OperatorStateBackend(uid)
    for name, (layout, elements) in _joined(chains).items():
        mine = elements[partition::parallelism]
        if mine:
            dealt.put_list(name, layout, mine)
    return list(dealt.full_sections())


def _joined(chains: Iterable[Chain]) -> dict[str, tuple[StateLayout, list[Any]]]:
    joined: dict[str, tuple[StateLayout, list[Any]]] = {}
    for chain in chains:
        for name, (layout, elements) in _lists(chain).items():
            joined.setdefault(name, (layout, []))[1].extend(elements)
    return joined


def _lists(chain: Chain) -> dict[str, tuple[StateLayout, list[Any]]]:
    """Return the lists of one old partition. Its sections are deltas, so a backend loads them one after another."""
    old: OperatorStateBackend | None = None
    for section in chain:
        if section.kind != OPERATOR:
            raise StateError(
                f"state '{section.name}' of operator '{section.uid}' is of kind '{section.kind}'; only list state of "
                f"operators ('{OPERATOR}') is dealt out"
            )
        if old is None:
            old = OperatorStateBackend(section.uid)
        old.load_section(section)
    return {} if old is None else old.lists()
