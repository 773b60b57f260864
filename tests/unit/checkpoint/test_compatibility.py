"""Verdicts on states, from the catalogues of a savepoint and of a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.catalogue import catalogue
from headwater.checkpoint.savepoint.compatibility import (
    AskedState,
    Finding,
    ProgramFacts,
    ProgramOperator,
    StoredFacts,
    StoredStateFacts,
    Verdict,
    compare,
    rename_facts,
)
from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.checkpoint.snapshot.file import write_snapshot
from headwater.checkpoint.store import ManifestStore
from headwater.common.time import Duration
from headwater.common.typeinfo import Types
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor, ValueStateDescriptor
from headwater.state.evolution.changed_classes import ClassChange
from headwater.state.evolution.schema import ClassSchema
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import Section
from headwater.state.ttl.config import StateTtlConfig

PAYMENT = ClassSchema("shop", "Payment", "dataclass", (("amount", "int"),))


def stored(*states: StoredStateFacts, **facts: Any) -> StoredFacts:
    return StoredFacts(
        **{"max_parallelism": 128, "operators": {"op": "Count"}, "sources": (), "states": states, **facts}
    )


def value(**facts: Any) -> StoredStateFacts:
    return StoredStateFacts(**{"uid": "op", "name": "s", "kind": "value", "layout": layout(), **facts})


def layout(**parts: Any) -> StateLayout:
    return StateLayout("value", False, False)._replace(**parts)


def asking(*descriptors: StateDescriptor, **facts: Any) -> ProgramFacts:
    asked = tuple(AskedState(each.name, StateLayout.of(each), each.kind, each) for each in descriptors)
    return program(ProgramOperator("op", "Count", asked, **facts))


def program(*operators: ProgramOperator, **facts: Any) -> ProgramFacts:
    found = {operator.uid: operator for operator in operators}
    return ProgramFacts(**{"max_parallelism": 128, "operators": found, "sources": (), **facts})


def changed(*obstacles: str) -> Callable[[ClassSchema], ClassChange]:
    return lambda schema: ClassChange(schema, ("'currency' is new",), obstacles)


def unchanged(schema: ClassSchema) -> None:
    return None


def expiring(name: str) -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor(name)
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_seconds(1)).build())
    return descriptor


def migrating(*versions: int) -> ValueStateDescriptor:
    descriptor = ValueStateDescriptor("s")
    for version in versions:
        descriptor.migrate_with(str, to_version=version)
    return descriptor


@pytest.mark.parametrize(
    ("state", "asked", "change_of", "verdict", "detail"),
    [
        (value(), ValueStateDescriptor("s"), unchanged, Verdict.SAME, ""),
        (value(schemas=(PAYMENT,)), ValueStateDescriptor("s"), unchanged, Verdict.SAME, ""),
        (
            value(schemas=(PAYMENT,)),
            ValueStateDescriptor("s"),
            changed(),
            Verdict.MIGRATED,
            "shop.Payment: 'currency' is new",
        ),
        (
            value(schemas=(PAYMENT,)),
            ValueStateDescriptor("s"),
            changed("class shop.Payment is gone."),
            Verdict.INCOMPATIBLE,
            "class shop.Payment is gone.",
        ),
        (
            value(schemas=(PAYMENT,)),
            migrating(2),
            changed("class shop.Payment is gone."),
            Verdict.MIGRATED,
            "from version 1 to 2; shop.Payment: changed",
        ),
        (
            value(schemas=(PAYMENT,), key_classes=frozenset({("shop", "Payment")})),
            ValueStateDescriptor("s"),
            changed(),
            Verdict.INCOMPATIBLE,
            "its keys are of class shop.Payment, which has changed; a key must not",
        ),
        (value(), migrating(2, 3), unchanged, Verdict.MIGRATED, "from version 1 to 3"),
        (
            value(),
            migrating(3),
            unchanged,
            Verdict.INCOMPATIBLE,
            "it is of version 1, and there is no migration to 2.",
        ),
        (
            value(layout=layout(version=2)),
            ValueStateDescriptor("s"),
            unchanged,
            Verdict.INCOMPATIBLE,
            "its values are of version 2, this program knows version 1.",
        ),
        (
            value(layout=layout(type="LONG")),
            ValueStateDescriptor("s", Types.DOUBLE()),
            unchanged,
            Verdict.MIGRATED,
            "from LONG to DOUBLE",
        ),
        (
            value(layout=layout(type="STRING")),
            ValueStateDescriptor("s", Types.LONG()),
            unchanged,
            Verdict.INCOMPATIBLE,
            "the value was declared as STRING and is LONG now.",
        ),
        (
            value(),
            ListStateDescriptor("s"),
            unchanged,
            Verdict.INCOMPATIBLE,
            "it was value state without TTL and is list state without TTL; use another name for the new state",
        ),
        (
            value(),
            expiring("s"),
            unchanged,
            Verdict.INCOMPATIBLE,
            "it was value state without TTL and is value state with TTL; use another name for the new state",
        ),
    ],
)
def test_one_state(
    state: StoredStateFacts, asked: StateDescriptor, change_of: Any, verdict: Verdict, detail: str
) -> None:
    assert compare(stored(state), asking(asked), change_of) == [Finding("op", "s", verdict, detail)]


def test_a_renamed_state_is_one_lost_and_one_new() -> None:
    found = compare(stored(value()), asking(ValueStateDescriptor("t")), unchanged)
    assert [(each.state, each.verdict) for each in found] == [("s", Verdict.LOST), ("t", Verdict.NEW)]


def test_windows_ask_for_more_when_records_come() -> None:
    assert compare(stored(value()), asking(asks_later=True), unchanged)[0].verdict is Verdict.KEPT


def test_operators_by_uid() -> None:
    found = compare(
        stored(value(uid="old"), operators={"old": "Count"}),
        program(ProgramOperator("new", "Count", (AskedState("s", layout(), "value"),))),
        unchanged,
    )
    assert found == [
        Finding("new", "s", Verdict.NEW),
        Finding("old", "s", Verdict.LOST, "the program has no operator with this uid (it was 'Count')"),
    ]


def test_an_operator_that_cannot_be_opened_stops() -> None:
    (found,) = compare(stored(value()), asking(problem="no database"), unchanged)
    assert found == Finding("op", "(all)", Verdict.UNKNOWN, "it could not be opened: no database")
    assert found.verdict.stops


def test_sources_and_max_parallelism() -> None:
    found = compare(
        stored(operators={}, sources=("a", "b")), program(max_parallelism=64, sources=("b", "c")), unchanged
    )
    assert [(each.uid, each.verdict) for each in found] == [
        ("(job)", Verdict.INCOMPATIBLE),
        ("a", Verdict.LOST),
        ("b", Verdict.SAME),
        ("c", Verdict.NEW),
    ]
    assert "set pipeline.max-parallelism to 128" in found[0].detail


def test_output_that_only_a_lost_sink_can_commit() -> None:
    found = compare(stored(operators={}, uncommitted=("gone", "out")), program(sinks=("out",)), unchanged)
    assert [(each.uid, each.state, each.verdict) for each in found] == [("gone", "output", Verdict.INCOMPATIBLE)]
    assert "put it back for one run" in found[0].detail


def test_renamed_uids_are_found_under_their_new_names() -> None:
    facts = stored(value(uid="a"), operators={"a": "Count"}, sources=("s",), uncommitted=("out",))
    renamed = rename_facts(facts, {"a": "b", "s": "t", "out": "files"})
    asked = ProgramOperator("b", "Count", (AskedState("s", layout(), "value"),))
    found = compare(renamed, program(asked, sources=("t",), sinks=("files",)), unchanged)
    assert [(each.uid, each.verdict) for each in found] == [("b", Verdict.SAME), ("t", Verdict.SAME)]


def test_only_these_verdicts_stop() -> None:
    assert {verdict for verdict in Verdict if verdict.stops} == {Verdict.LOST, Verdict.INCOMPATIBLE, Verdict.UNKNOWN}


def checkpoint(directory: Path, *chains: list[list[Section]]) -> None:
    """A checkpoint directory with one partition per chain of snapshots."""
    files = CheckpointLayout(directory)
    files.create()
    records = []
    for partition, chain in enumerate(chains):
        refs = []
        for epoch, sections in enumerate(chain):
            path = files.new_snapshot(1, partition, epoch, "a", "delta")
            refs.append(write_snapshot(path, {"epoch": epoch, "kind": "delta", "key_groups": (0, 16)}, sections))
        records.append(PartitionRecord(1, partition, refs))
    ManifestStore(files).write(Manifest("id", "job", 1, 1, 0, 0, "", 16, operators={"op": "Count"}, partitions=records))


def test_the_catalogue_counts_what_a_chain_leaves(tmp_path: Path) -> None:
    keyed, unkeyed = HeapKeyedStateBackend("op", 16, range(16)), OperatorStateBackend("op")
    states: list[Any] = [
        keyed.get_state(descriptor)
        for descriptor in (ValueStateDescriptor("v"), ListStateDescriptor("l"), MapStateDescriptor("m"))
    ]
    panes = keyed.get_folded_panes("p")
    offsets = unkeyed.get_list_state(ListStateDescriptor("offsets", Types.INT()))
    rules = unkeyed.get_broadcast_state(MapStateDescriptor("rules"))

    def epoch(change: Callable[[], None]) -> list[Section]:
        keyed.begin_epoch()
        unkeyed.begin_epoch()
        change()
        sections = [*keyed.delta_sections(), *unkeyed.delta_sections()]
        for backend in (keyed, unkeyed):
            backend.commit_epoch(cut=True)
            backend.checkpoint_completed()
        return sections

    def first() -> None:
        for key in range(5):
            keyed.current_key = key
            states[0].update(key)
            states[1].update([1, 2])
            states[2].put_all({"a": 1, "b": 2})
            keyed.event_timers.register(key, key, None)
        panes.reduce([1, 2], [0, 0], [1, 1], lambda a, b: a)
        offsets.update([1, 2, 3])
        rules.put_all({"x": 1, "y": 2})

    def second() -> None:
        keyed.current_key = 3
        for state in states:
            state.clear()
        keyed.event_timers.delete(3, 3, None)
        offsets.add(4)
        rules.remove("x")

    checkpoint(tmp_path, [epoch(first), epoch(second)])
    found = {state.name: (state.kind, state.entries) for state in catalogue(open_savepoint(tmp_path)).states}
    assert found == {
        "v": ("value", 4),
        "l": ("list", 4),
        "m": ("map", 4),
        "p": ("folded panes", 2),
        "offsets": ("operator list", 4),
        "rules": ("broadcast", 1),
        "event-time timers": ("timers", 4),
    }
