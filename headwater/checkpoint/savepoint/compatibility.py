"""Compares the states in a savepoint with those of a program, and says what a start would do to each. Pure.

`catalogue.py` lists the states of the savepoint, `runtime/program_states.py` those of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.changed_classes import ClassChange, class_change
from headwater.state.evolution.declared_types import NoConversionError, type_conversion, type_text
from headwater.state.evolution.migration import migration_obstacles
from headwater.state.evolution.schema import ClassSchema, NotLoadedError
from headwater.state.snapshot.layout import StateLayout

POSITIONS = "positions"
"""The `state` of a `Finding` about a source."""

OUTPUT = "output"
"""The `state` of a `Finding` about a sink."""


class Verdict(Enum):
    """What a start would do to one state."""

    SAME = "same"
    MIGRATED = "migrated"
    NEW = "new"
    KEPT = "kept"
    LOST = "lost"
    INCOMPATIBLE = "incompatible"
    UNKNOWN = "unknown"

    @property
    def stops(self) -> bool:
        """True if a person must decide something before the job can start."""
        return self in (Verdict.LOST, Verdict.INCOMPATIBLE, Verdict.UNKNOWN)


@dataclass(frozen=True)
class StoredStateFacts:
    """One state in a savepoint."""

    uid: str
    name: str
    kind: str
    """A word for people: 'value', 'broadcast', 'timers'."""
    layout: StateLayout | None = None
    """None for timers."""
    schemas: tuple[ClassSchema, ...] = ()
    """Schemas of the dataclasses and NamedTuples in its entries, keys included."""
    key_classes: frozenset[tuple[str, str]] = frozenset()
    """(module, qualname) of the dataclasses and NamedTuples in its keys."""
    entries: int = 0
    bytes: int = 0
    problem: str = ""
    """Why it could not be read; then nothing of the above is known but its bytes."""


@dataclass(frozen=True)
class StoredFacts:
    """The content of a savepoint."""

    max_parallelism: int
    operators: Mapping[str, str]
    """{uid: name} of the operators that keep state"""
    sources: Collection[str]
    states: Collection[StoredStateFacts]
    uncommitted: Collection[str] = ()
    """Uids of sinks with output that is not visible yet."""
    not_loaded: Collection[str] = ()
    """Classes and functions that it names and that were not loaded to read it."""


@dataclass(frozen=True)
class AskedState:
    """One state that an operator of a program asks for."""

    name: str
    layout: StateLayout
    kind: str
    descriptor: StateDescriptor | None = None
    """None for the contents of windows."""


@dataclass(frozen=True)
class ProgramOperator:
    """One operator of a program that keeps state."""

    uid: str
    name: str
    states: tuple[AskedState, ...] = ()
    asks_later: bool = False
    """It may ask for more states when records arrive, as windows and their triggers do."""
    problem: str = ""
    """Why the operator could not be opened. Its states are then unknown."""


@dataclass(frozen=True)
class ProgramFacts:
    """The states, sources and sinks of a program."""

    max_parallelism: int
    operators: Mapping[str, ProgramOperator]
    sources: Collection[str]
    sinks: Collection[str] = ()


@dataclass(frozen=True)
class Finding:
    """The verdict on one state."""

    uid: str
    state: str
    verdict: Verdict
    detail: str = ""


ChangeOf = Callable[[ClassSchema], ClassChange | None]


def rename_facts(stored: StoredFacts, mapping: Mapping[str, str]) -> StoredFacts:
    """Return `stored` with the uids renamed by `mapping` ({old: new})."""

    def now(uid: str) -> str:
        return mapping.get(uid, uid)

    return replace(
        stored,
        operators={now(uid): name for uid, name in stored.operators.items()},
        sources=frozenset(map(now, stored.sources)),
        states=tuple(replace(state, uid=now(state.uid)) for state in stored.states),
        uncommitted=frozenset(map(now, stored.uncommitted)),
    )


def compare(stored: StoredFacts, program: ProgramFacts, change_of: ChangeOf = class_change) -> list[Finding]:
    """Return a finding for each state of the savepoint and the program, by uid; then for sources and missing sinks."""
    findings: list[Finding] = []
    if stored.max_parallelism != program.max_parallelism:
        findings.append(
            Finding(
                "(job)",
                "key groups",
                Verdict.INCOMPATIBLE,
                f"max parallelism was {stored.max_parallelism} and is {program.max_parallelism}; "
                f"set pipeline.max-parallelism to {stored.max_parallelism}",
            )
        )
    for uid in sorted({*stored.operators, *program.operators}):
        states = [state for state in stored.states if state.uid == uid]
        operator = program.operators.get(uid)
        if operator is None:
            findings += _lost_operator(uid, stored.operators.get(uid, uid), states)
        elif operator.problem:
            findings.append(Finding(uid, "(all)", Verdict.UNKNOWN, f"it could not be opened: {operator.problem}"))
        else:
            findings += _operator_findings(operator, states, change_of)
    for uid in sorted({*stored.sources, *program.sources}):
        findings.append(_source_finding(uid, stored.sources, program.sources))
    for uid in sorted({*stored.uncommitted} - {*program.sinks}):
        detail = "it has output that is not visible yet, and the program has no such sink; put it back for one run"
        findings.append(Finding(uid, OUTPUT, Verdict.INCOMPATIBLE, detail))
    return findings


def _lost_operator(uid: str, name: str, states: Iterable[StoredStateFacts]) -> list[Finding]:
    detail = f"the program has no operator with this uid (it was '{name}')"
    names = [state.name for state in states] or ["(none)"]
    return [Finding(uid, each, Verdict.LOST, detail) for each in names]


def _operator_findings(operator: ProgramOperator, states: list[StoredStateFacts], change_of: ChangeOf) -> list[Finding]:
    asked = {state.name: state for state in operator.states}
    found: list[Finding] = []
    for state in sorted(states, key=lambda each: each.name):
        try:
            verdict, detail = _verdict_of(operator, state, asked.get(state.name), change_of)
        except NotLoadedError as error:
            verdict, detail = (
                Verdict.UNKNOWN,
                (f"it has objects of module '{error}', which the program has not imported; to import it: --trust"),
            )
        found.append(Finding(operator.uid, state.name, verdict, detail))
    known = {state.name for state in states}
    found += [Finding(operator.uid, name, Verdict.NEW) for name in sorted(asked) if name not in known]
    return found


def _verdict_of(
    operator: ProgramOperator, state: StoredStateFacts, asked: AskedState | None, change_of: ChangeOf
) -> tuple[Verdict, str]:
    if state.problem:
        return Verdict.UNKNOWN, state.problem
    if state.layout is None:
        return _verdict_on_keys(state, _changes(state, change_of))
    if asked is not None:
        return _verdict(state, state.layout, asked, change_of)
    if operator.asks_later:
        return Verdict.KEPT, "not asked for in open(); windows ask when a record comes"
    return Verdict.LOST, "the operator does not ask for it in open(): it is carried along, unused"


def _verdict(
    state: StoredStateFacts, layout: StateLayout, asked: AskedState, change_of: ChangeOf
) -> tuple[Verdict, str]:
    if state.kind != asked.kind or layout.shape != asked.layout.shape:
        before, after = (
            str(each) if kind == each.kind else f"{kind} state"
            for kind, each in ((state.kind, layout), (asked.kind, asked.layout))
        )
        return Verdict.INCOMPATIBLE, f"it was {before} and is {after}; use another name for the new state"
    changes = _changes(state, change_of)
    verdict, detail = _verdict_on_keys(state, changes)
    if verdict is Verdict.INCOMPATIBLE:
        return verdict, detail
    if asked.descriptor is None:
        obstacles = [obstacle for change in changes for obstacle in change.obstacles]
    else:
        obstacles = migration_obstacles(asked.descriptor, layout, changes)
    if obstacles:
        return Verdict.INCOMPATIBLE, " ".join(obstacles)
    details = _differences(layout, asked.layout, changes)
    return (Verdict.MIGRATED, "; ".join(details)) if details else (Verdict.SAME, "")


def _verdict_on_keys(state: StoredStateFacts, changes: Iterable[ClassChange]) -> tuple[Verdict, str]:
    for change in changes:
        if (change.stored.module, change.stored.qualname) in state.key_classes:
            return (
                Verdict.INCOMPATIBLE,
                f"its keys are of class {change.stored.name}, which has changed; a key must not",
            )
    return Verdict.SAME, ""


def _changes(state: StoredStateFacts, change_of: ChangeOf) -> list[ClassChange]:
    found = (change_of(schema) for schema in state.schemas)
    return [change for change in found if change is not None and change.shows]


def _differences(before: StateLayout, after: StateLayout, changes: Iterable[ClassChange]) -> list[str]:
    found: list[str] = []
    if before.version != after.version:
        found.append(f"from version {before.version} to {after.version}")
    else:
        try:
            converted = type_conversion(before.type, after.type) is not None
        except NoConversionError:
            converted = False
        if converted:
            found.append(f"from {type_text(before.type)} to {type_text(after.type)}")
    for change in changes:
        found.append(f"{change.stored.name}: {'changed' if change.obstacles else ', '.join(change.differences)}")
    return found


def _source_finding(uid: str, stored: Collection[str], program: Collection[str]) -> Finding:
    if uid not in program:
        return Finding(uid, POSITIONS, Verdict.LOST, "the program has no source with this uid")
    return Finding(uid, POSITIONS, Verdict.SAME if uid in stored else Verdict.NEW)
