"""Programs that change their records and values whenever they can, and a model of what they must put out.

A program is a keyed process function, made of generated actions, with three chains of operators behind it: on its main
output (twice) and on its side output. `Model` runs the same functions and copies whatever changes hands.
`run` runs the job's stage, with batches and epochs of any size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.common.ids import MIN_WATERMARK
from headwater.datastream import (
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import FrameKind, decode_header, decode_records, payload_of
from headwater.runtime.stage.edge_ids import edge_id
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.wiring import RunnerIdentity

SIDE = OutputTag("side")
NOW_MS = 1_700_000_000_000


@dataclass
class Record:
    key: int
    number: int
    marks: list[int] = field(default_factory=list)


def change(record: Record, mark: int) -> None:
    record.number += 1
    record.marks.append(mark)
    del record.marks[:-3]  # programs that feed on their own output must not grow without bounds


def joined(one: Record, other: Record) -> Record:
    one.number += other.number
    one.marks.extend(other.marks)
    del one.marks[:-3]
    return one


ACTIONS = (
    "change", "emit", "emit-side", "emit-in-tuple", "emit-reused", "emit-kept", "emit-key", "emit-plain",
    "store", "store-kept", "store-reused", "change-read", "change-read-and-store", "emit-read", "keep-read",
    "list-add", "list-change", "list-emit", "map-put", "map-change", "map-emit", "reduce-add", "reduce-emit",
    "keep", "change-kept", "set-timer",
)  # fmt: skip


class Program(KeyedProcessFunction):
    """Does `actions` with each record, and `timer_actions` with each timer."""

    def __init__(self, actions: Sequence[str], timer_actions: Sequence[str]) -> None:
        self.actions = actions
        self.timer_actions = timer_actions

    def open(self, runtime_context: Any) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))
        self.reducing = runtime_context.get_reducing_state(ReducingStateDescriptor("reducing", joined))
        self.kept: list[Record] = []
        self.reused = Record(-1, 0)

    def process_element(self, value: Record, ctx: Any) -> Iterator[Any]:
        for mark, action in enumerate(self.actions):
            yield from self.do(action, value, mark, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        record = Record(ctx.get_current_key(), timestamp)
        for mark, action in enumerate(self.timer_actions):
            yield from self.do(action, record, 100 + mark, ctx)

    def do(self, action: str, record: Record, mark: int, ctx: Any) -> Iterator[Any]:
        kept = self.kept[-1] if self.kept else record
        if action == "change":
            change(record, mark)
        elif action == "emit":
            yield record
        elif action == "emit-side":
            yield SIDE, record
        elif action == "emit-in-tuple":
            yield "in a tuple", mark, (record,)
        elif action == "emit-plain":
            yield mark, record.number, "plain"
        elif action == "emit-reused":
            change(self.reused, record.number)
            yield self.reused
        elif action == "emit-kept":
            yield kept
        elif action == "emit-key":
            yield ctx.get_current_key()
        elif action == "store":
            self.value.update(record)
        elif action == "store-kept":
            self.value.update(kept)
        elif action == "store-reused":
            self.value.update(self.reused)
        elif action in ("change-read", "change-read-and-store", "emit-read", "keep-read"):
            read = self.value.value()
            if read is None:
                return
            if action == "emit-read":
                yield read
            if action == "keep-read":
                self.kept.append(read)
            else:
                change(read, mark)
            if action == "change-read-and-store":
                self.value.update(read)
                change(read, mark)
        elif action == "list-add":
            self.list.add(record)
        elif action == "list-change":
            for element in self.list.get():
                change(element, mark)
        elif action == "list-emit":
            yield from list(self.list.get())[-2:]
        elif action == "map-put":
            self.map.put(record.number % 3, record)
        elif action == "map-change":
            for element in self.map.values():
                change(element, mark)
        elif action == "map-emit":
            yield self.map.get(record.number % 3)
        elif action == "reduce-add":
            self.reducing.add(record)
        elif action == "reduce-emit":
            yield self.reducing.get()
        elif action == "keep":
            self.kept.append(record)
        elif action == "change-kept":
            for each in self.kept[-3:]:
                change(each, mark)
        elif action == "set-timer":
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5)


def touch(value: Any) -> None:
    """Change a record, or the one in a tuple."""
    if isinstance(value, tuple):
        value = value[-1][0]
    if isinstance(value, Record):
        change(value, -1)


class ChangingMap(MapFunction):
    """Keeps what it gets, changes what it kept before, and returns the same object."""

    def open(self, runtime_context: Any) -> None:
        self.kept: list[Any] = []

    def map(self, value: Any) -> Any:
        for each in self.kept[-2:]:
            touch(each)
        self.kept.append(value)
        touch(value)
        return value


class ReusingFlatMap(FlatMapFunction):
    """Yields what it gets and, twice, one and the same object."""

    def open(self, runtime_context: Any) -> None:
        self.reused = Record(-2, 0)

    def flat_map(self, value: Any) -> Iterator[Any]:
        yield value
        touch(value)
        change(self.reused, 1)
        yield self.reused
        change(self.reused, 2)
        yield self.reused


class KeepingFilter(FilterFunction):
    """Drops every third record, and changes those that it saw before."""

    def open(self, runtime_context: Any) -> None:
        self.seen: list[Any] = []

    def filter(self, value: Any) -> bool:
        for each in self.seen[-2:]:
            touch(each)
        self.seen.append(value)
        return len(self.seen) % 3 != 0


class ChangingProcess(ProcessFunction):
    """Yields what it gets, before and after it has changed it."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value
        touch(value)
        yield value
        touch(value)


STEPS: dict[str, Callable[[], Any]] = {
    "map": ChangingMap,
    "flat_map": ReusingFlatMap,
    "filter": KeepingFilter,
    "process": ChangingProcess,
}

Chains = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""The operators behind the main output, once more behind it, and behind the side output."""


def build_program(program: Program, chains: Chains) -> Callable[[StreamExecutionEnvironment], DataStream]:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        source = env.from_collection([Record(0, 0)])
        main = source.key_by(lambda record: record.key).process(program).uid("program")
        first, second, side = (
            _chained(stream, steps).rebalance()
            for stream, steps in zip((main, main, main.get_side_output(SIDE)), chains, strict=True)
        )
        return first.union(second, side).map(str)

    return build


def _chained(stream: DataStream, steps: Sequence[str]) -> DataStream:
    for step in steps:
        stream = getattr(stream, step)(STEPS[step]())
    return stream


@dataclass
class Outcome:
    """What a run put out, per edge and in order, and the state that it left."""

    outputs: dict[int, list[str]]
    state: dict[str, str]


Inputs = Sequence[tuple[int, Any]]
"""(input of the operator, record); the record's timestamp is ten times its position."""

WATERMARK_EVERY = 5


def run(plan: JobPlan, inputs: Inputs, *, batch: int, epoch: int) -> Outcome:
    """Run the job's second stage: `batch` records at a time at most, `epoch` records in an epoch."""
    frames: list[bytes] = []
    runner = StageRunner(plan, 1, RunnerIdentity("job", 0), lambda target, frame: frames.append(frame))
    runner.open()
    head = next(operator for operator in plan.stages[1].operators if not operator.inputs[0].chained)
    edges = [edge_id(head.id, position) for position in range(len(head.inputs))]
    watermarks: dict[str, int] = {}
    inputs = copy.deepcopy(inputs)
    for number, start in enumerate(range(0, len(inputs), epoch)):
        for each in runner.backends():
            each.begin_epoch()
        runner.begin_epoch(number, f"attempt-{number}", NOW_MS + number, watermarks)
        end = min(start + epoch, len(inputs))
        while start < end:
            stop = _end_of_batch(inputs, start, min(start + batch, end))
            values = [value for _, value in inputs[start:stop]]
            runner.batch(edges[inputs[start][0]], values, [10 * position for position in range(start, stop)])
            if stop % WATERMARK_EVERY == 0:
                runner.advance(head.id, 10 * stop - 1)
            start = stop
        if end == len(inputs):
            runner.advance(head.id, 10 * end + 100_000)
        watermarks = runner.finish_epoch(NOW_MS + number).watermarks
        for each in runner.backends():
            each.delta_sections()
            each.commit_epoch(cut=True)
            each.checkpoint_completed()
    outcome = Outcome(outputs_of(frames), _state(runner))
    runner.close()
    return outcome


def _end_of_batch(inputs: Inputs, start: int, limit: int) -> int:
    """A batch has records of one input, and none from behind a watermark."""
    for position in range(start + 1, limit):
        if position % WATERMARK_EVERY == 0 or inputs[position][0] != inputs[start][0]:
            return position
    return limit


def outputs_of(frames: list[bytes]) -> dict[int, list[str]]:
    outputs: dict[int, list[str]] = {}
    for frame in frames:
        header = decode_header(frame)
        if header.kind == FrameKind.DATA:
            outputs.setdefault(header.edge & 0xFF, []).extend(map(repr, decode_records(payload_of(frame))[0]))
    return outputs


def _state(runner: StageRunner) -> dict[str, str]:
    found: dict[str, str] = {}
    for backend in runner.backends():
        if hasattr(backend, "committed_value"):
            for name in ("value", "list", "map", "reducing", "reduced"):
                for key in backend.keys(name) if name in backend.state_names() else ():
                    stored = backend.committed_value(name, key)
                    found[f"{name} of {key!r}"] = repr(sorted(stored.items()) if isinstance(stored, dict) else stored)
    return found


# -- the model ---------------------------------------------------------------------------------------------------------


class _ModelState:
    """All states of all keys; everything is copied on its way in and out."""

    def __init__(self, model: Model, name: str) -> None:
        self.model = model
        self.name = name
        self.stored: dict[Any, Any] = {}

    def value(self) -> Any:
        return copy.deepcopy(self.stored.get(self.model.key))

    def update(self, value: Any) -> None:
        self.stored[self.model.key] = copy.deepcopy(value)

    def get(self, *map_key: Any) -> Any:
        if self.name == "map":
            return copy.deepcopy(self.stored.get(self.model.key, {}).get(*map_key))
        return copy.deepcopy(self.stored.get(self.model.key, [] if self.name == "list" else None))

    def add(self, value: Any) -> None:
        added, current = copy.deepcopy(value), self.stored.get(self.model.key)
        if self.name == "list":
            self.stored.setdefault(self.model.key, []).append(added)
        else:
            self.stored[self.model.key] = added if current is None else joined(current, added)

    def put(self, map_key: Any, value: Any) -> None:
        self.stored.setdefault(self.model.key, {})[map_key] = copy.deepcopy(value)

    def values(self) -> Any:
        return copy.deepcopy(list(self.stored.get(self.model.key, {}).values()))


class Model:
    """What a program must put out. It is its own runtime context, context and timer service."""

    def __init__(self, program: Program, chains: Chains) -> None:
        self.program = program
        self.key: Any = None
        self.now = MIN_WATERMARK
        self.timers: dict[int, Any] = {}
        self.states: dict[str, _ModelState] = {}
        self.chains = [[STEPS[step]() for step in steps] for steps in chains]
        self.outputs: dict[int, list[str]] = {}
        for function in [program, *(step for steps in self.chains for step in steps)]:
            function.open(self)

    def get_state(self, descriptor: Any) -> _ModelState:
        return self.states.setdefault(descriptor.name, _ModelState(self, descriptor.name))

    get_list_state = get_map_state = get_reducing_state = get_state

    def timer_service(self) -> Model:
        return self

    def register_event_time_timer(self, timestamp: int) -> None:
        self.timers[timestamp] = self.key

    def timestamp(self) -> int:
        return self.now

    def get_current_key(self) -> Any:
        return copy.deepcopy(self.key)

    def run(self, inputs: Inputs) -> Outcome:
        for position, (_, record) in enumerate(copy.deepcopy(inputs)):
            self.key, self.now = record.key, 10 * position
            self._emit(self.program.process_element(record, self))
            if (position + 1) % WATERMARK_EVERY == 0:
                self._fire(10 * (position + 1) - 1)
        self._fire(10 * len(inputs) + 100_000)
        state = {
            f"{name} of {key!r}": repr(sorted(stored.items()) if isinstance(stored, dict) else stored)
            for name, states in self.states.items()
            for key, stored in states.stored.items()
        }
        return Outcome(self.outputs, state)

    def _fire(self, watermark: int) -> None:
        while self.timers and (due := min(self.timers)) <= watermark:
            self.key, self.now = self.timers.pop(due), due
            self._emit(self.program.on_timer(due, self))

    def _emit(self, results: Iterator[Any]) -> None:
        for result in results:
            if isinstance(result, tuple) and result[0] == SIDE:
                self._pass(2, 0, copy.deepcopy(result[1]))
            else:
                for chain in (0, 1):
                    self._pass(chain, 0, copy.deepcopy(result))

    def _pass(self, chain: int, position: int, value: Any) -> None:
        if position == len(self.chains[chain]):
            self.outputs.setdefault(chain, []).append(repr(value))
            return
        step = self.chains[chain][position]
        if isinstance(step, MapFunction):
            self._pass(chain, position + 1, copy.deepcopy(step.map(value)))
        elif isinstance(step, FilterFunction):
            if step.filter(value):
                self._pass(chain, position + 1, copy.deepcopy(value))
        else:
            produced = step.flat_map(value) if isinstance(step, FlatMapFunction) else step.process_element(value, self)
            for result in produced:
                self._pass(chain, position + 1, copy.deepcopy(result))
