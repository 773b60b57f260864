"""SQL over state whose slots hold values of different kinds. Each slot answers for itself; there are no sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.sql import run_sql
from headwater.runtime.slot.query import answers
from headwater.runtime.slot.query.answers import Session
from tests.unit.runtime.served_slot import OneOperator


class Slots:
    """Finds the slots, which are here, and passes requests on: what a driver does for slots without sockets."""

    def __init__(self, slots: Sequence[dict[Any, Any]]) -> None:
        self.sessions = [Session(OneOperator(entries)) for entries in slots]  # type: ignore[arg-type]

    def locate(self) -> dict[str, Any]:
        size = len(self.sessions)
        slot = {"stage": 1, "host": "here", "port": 0, "path": "", "incarnation": "one", "ready": True}
        return {
            "job_id": "job",
            "max_parallelism": 16,
            "secret": None,
            "operators": [{"uid": "op", "name": "op", "stage": 1, "parallelism": size}],
            "slots": [slot | {"partition": partition} for partition in range(size)],
        }

    def ask_slot(self, stage: int, partition: int, request: dict[str, Any]) -> dict[str, Any]:
        return self.sessions[partition].answer(request)

    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> dict[str, Any]:
        raise NotImplementedError


def column(name: str, *slots: dict[Any, Any]) -> list[Any]:
    rows = run_sql(StateReader(Slots(slots)), f"select {name} from op.count").rows
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([["a"], [1, "b"]], ['"a"', "1", '"b"']),
        ([[1, "b"], ["a"]], ["1", '"b"', '"a"']),
        ([[2**70], [1]], [str(2**70), "1"]),
        ([[2**60 + 1], [0.5]], [str(2**60 + 1), "0.5"]),
        ([["1.5"], [1, "b"], [2.5]], ['"1.5"', "1", '"b"', "2.5"]),
        ([[True], [1]], ["true", "1"]),
        ([[b"a"], ["YQ=="], [1]], ['{"$bytes": "YQ=="}', '"YQ=="', "1"]),
        ([["a"], ["b"]], ["a", "b"]),
        ([[1], [0.5]], [1.0, 0.5]),
        ([[], ["a"]], ["a"]),
        ([[1, "a"], ["b", 2]], ["1", '"a"', '"b"', "2"]),
    ],
    ids=repr,
)  # fmt: skip
def test_a_column_is_json_in_all_slots_or_in_none(values: list[list[Any]], expected: list[Any]) -> None:
    as_values = [{f"{slot}-{index}": value for index, value in enumerate(each)} for slot, each in enumerate(values)]
    assert column("value", *as_values) == expected
    assert column("key", *({value: 0 for value in each} for each in values)) == expected


def test_batches_of_one_slot_may_differ_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_BATCH_ENTRIES", 2)
    assert column("value", {1: "a", 2: "b", 3: 1, 4: "b"}) == ['"a"', '"b"', "1", '"b"']
