"""Windows in a job's state, as operators of each kind would store them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.operators.window.base import CONTENTS, PANES, SESSIONS
from headwater.operators.window.operator import MERGING_WINDOWS
from headwater.state.descriptors import ListStateDescriptor, ValueStateDescriptor

Fill = Callable[[Callable[[Any], Any]], None]
"""Stores windows, given what gives the backend of a key."""


def same_for_all_keys(of_key: Callable[[Any], Any]) -> None:
    for key in "ab":
        of_key(key).get_folded_panes(PANES).reduce([key, key], [0, 60], [1, 2], max)


def with_elements_and_merged(of_key: Callable[[Any], Any]) -> None:
    backend = of_key("a")
    backend.get_state(ValueStateDescriptor(MERGING_WINDOWS)).update((((0, 25), (0, 10)),))
    backend.current_namespace = (0, 10)
    backend.get_namespaced_state(ListStateDescriptor(CONTENTS)).add_all([1, 2])
    of_key("b").current_namespace = (30, 40)
    of_key("b").get_namespaced_state(ListStateDescriptor(CONTENTS)).add(3)


def sessions(*, buffered: bool) -> Fill:
    def fill(of_key: Callable[[Any], Any]) -> None:
        backend = of_key("a")
        held = (None, None) if buffered else ([7], [8, 9])
        backend.get_state(ValueStateDescriptor(SESSIONS)).update(((0, 10, 0, held[0]), (40, 70, 45, held[1])))
        if buffered:
            state = backend.get_namespaced_state(ListStateDescriptor(f"{SESSIONS}:elements"))
            for number, elements in ((0, [7]), (45, [8, 9])):
                backend.current_namespace = number
                state.add_all(elements)

    return fill
