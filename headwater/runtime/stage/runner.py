"""Runs the operators of one stage in one partition: wiring, watermarks, epochs. Knows no Spark and no sockets.

The same runner works in a slot (stateful stages), in a Python worker (stateless stages) and for the splits of stage 0.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import cloudpickle

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import config_options as options
from headwater.common.errors import UserCodeError, short_repr, user_traceback
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.graph.chains import chain_heads
from headwater.graph.plan import Exchange, InputSpec, JobPlan, OperatorSpec
from headwater.operators.base import Operator, OperatorContext
from headwater.operators.type_check import check_state_types
from headwater.runtime.epoch.chunk import decode_records
from headwater.runtime.epoch.figures import Figures, Traffic
from headwater.runtime.epoch.messages import EpochOutcome
from headwater.runtime.stage.busy_time import BusyTime
from headwater.runtime.stage.edges import EdgeWriter, Emit
from headwater.runtime.stage.key_sample import KeySample
from headwater.state.backends import HEAP, backend_kind, make_keyed_backend
from headwater.state.copying import all_captured
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.keys.key_groups import key_group_range
from headwater.state.operator_backend import OperatorStateBackend
from headwater.time.watermark_keys import at_input, at_output

Timestamps = list[int | None] | None

SAMPLES_SECONDS = 1.0
"""How often a partition reports its most frequent keys."""


def edge_id(consumer: int, position: int) -> int:
    """Return the id of an edge, made of the consuming operator's id and the position of the input."""
    return consumer << 8 | position


def consumer_of(edge: int) -> int:
    """Return the id of the operator that consumes an edge."""
    return edge >> 8


class OperatorPort:
    """One input of an operator. All ports of one operator share its gate."""

    def __init__(self, gate: Gate, input_index: int, producer: int | None = None) -> None:
        self._gate = gate
        self._input_index = input_index
        self.producer = producer
        self.watermark = MIN_WATERMARK
        self.is_idle = False
        gate.ports.append(self)

    @property
    def uid(self) -> str:
        """Of the operator."""
        return self._gate.spec.uid

    @property
    def vertex(self) -> str:
        """Uid of the head of its vertex."""
        return self._gate.vertex

    def batch(self, values: list[Any], timestamps: Timestamps) -> None:
        self.batch_of(self._input_index, values, timestamps)

    def batch_of(self, input_index: int, values: list[Any], timestamps: Timestamps) -> None:
        if values:
            self.is_idle = False
            self._gate.records_in += len(values)
            operator = self._gate.operator
            try:
                operator.read_ahead(values)
                operator.process_batch(values, timestamps, input_index)
            except SystemExit as error:
                raise self._gate.exited(error, f"one of {len(values)}, the first is {short_repr(values[0])}") from error

    def advance(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self.is_idle = False
            self._gate.update()

    def idle(self, idle: bool) -> None:
        if idle != self.is_idle:
            self.is_idle = idle
            self._gate.update()


class BorderPort(OperatorPort):
    """The input of a vertex that another vertex of the same stage calls: what happens behind it is its own time."""

    def __init__(self, gate: Gate, input_index: int, producer: int, busy: BusyTime) -> None:
        super().__init__(gate, input_index, producer)
        self._busy = busy

    def batch(self, values: list[Any], timestamps: Timestamps) -> None:
        before = self._busy.enter(self._gate.vertex)
        super().batch(values, timestamps)
        self._busy.enter(before)

    def advance(self, watermark: int) -> None:
        before = self._busy.enter(self._gate.vertex)
        super().advance(watermark)
        self._busy.enter(before)


class Gate:
    """Holds an operator's watermark at the minimum over its ports, idle ports excluded."""

    def __init__(self, operator: Operator, spec: OperatorSpec, vertex: str) -> None:
        self.operator = operator
        self.spec = spec
        self.vertex = vertex
        """Uid of the head of its vertex."""
        self.ports: list[OperatorPort] = []
        self.records_in = 0
        self._idle = False

    def update(self) -> None:
        active = [port.watermark for port in self.ports if not port.is_idle]
        if not active:
            if not self._idle:
                self._idle = True
                self.operator.process_idle(True)
            return
        if self._idle:
            self._idle = False
            self.operator.process_idle(False)
        watermark = min(active)
        if watermark > self.operator.context.watermark:
            try:
                if watermark == MAX_WATERMARK:
                    self.operator.end_of_input()
                self.operator.process_watermark(watermark)
            except SystemExit as error:
                raise self.exited(error, f"none: the watermark became {watermark}") from error

    def exited(self, error: SystemExit, record: str) -> UserCodeError:
        """Return the error to raise if user code called sys.exit(): it must not end headwater's process."""
        epoch = self.operator.context.epoch
        return UserCodeError(self.spec.name, f"<{record}>", epoch, user_traceback(error), repr(error))

    def reset(self) -> None:
        """Set the operator's watermark from its ports, without emitting it downstream."""
        self._idle = False
        watermark = min((port.watermark for port in self.ports if not port.is_idle), default=MIN_WATERMARK)
        self.operator.context.watermark = watermark
        if self.operator.context.keyed_backend is not None:
            self.operator.context.keyed_backend.watermark = watermark


class EdgePort:
    """A port that writes to an edge out of the stage."""

    def __init__(self, writer: EdgeWriter) -> None:
        self.writer = writer
        self.batch = writer.write
        self.advance = writer.advance

    def idle(self, idle: bool) -> None:
        self.writer.idle = idle


Port = OperatorPort | EdgePort


class Fan:
    """The output of an operator or source: all ports that it feeds, by side tag. Implements `operators.base.Output`."""

    def __init__(self) -> None:
        self.main: list[Port] = []
        self.sides: dict[str, list[Port]] = {}
        self.watermark = MIN_WATERMARK
        self.records = 0
        """Emitted in this epoch."""

    def add(self, port: Port, side_tag: str | None) -> None:
        (self.main if side_tag is None else self.sides.setdefault(side_tag, [])).append(port)

    def ports(self) -> list[Port]:
        return self.main + [port for ports in self.sides.values() for port in ports]

    def emit(self, values: list[Any], timestamps: Timestamps) -> None:
        self.records += len(values)
        _deliver(self.main, values, timestamps)

    def emit_side(self, tag_id: str, values: list[Any], timestamps: Timestamps) -> None:
        self.records += len(values)
        _deliver(self.sides.get(tag_id, []), values, timestamps)

    def emit_watermark(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            for port in self.ports():
                port.advance(watermark)

    def emit_idle(self, idle: bool) -> None:
        for port in self.ports():
            port.idle(idle)


def _uid_of(plan: JobPlan, node: int) -> str:
    """The uid of a source or operator."""
    source = next((source for source in plan.sources if source.id == node), None)
    return plan.operator(node).uid if source is None else source.uid


def _own_copy(factory: Callable[[], Operator]) -> Callable[[], Operator]:
    """Return a copy of `factory`, so that every partition has function objects of its own, as in Flink.

    One Python worker runs several partitions of a stage, and the plan has each function once: without a copy, one
    partition would see what `open` sets in another partition's function.
    """
    copied: Callable[[], Operator] = pickle.loads(cloudpickle.dumps(factory))
    return copied


def _deliver(ports: list[Port], values: list[Any], timestamps: Timestamps) -> None:
    """Each consumer gets records of its own: one that changes them in place must not be seen by the others.

    Edges may share: they change nothing. But they hold records until a chunk is full, while operators run.
    """
    for port in ports[1:]:
        shared = isinstance(port, EdgePort) and isinstance(ports[0], EdgePort)
        port.batch(
            list(values) if shared else list(all_captured(values)), None if timestamps is None else [*timestamps]
        )
    if ports:
        ports[0].batch(values, timestamps)


class Inlet:
    """Where the chunks of one edge enter the stage."""

    def __init__(self, port: OperatorPort, input_index: int, sample: KeySample | None) -> None:
        self.port = port
        self.input_index = input_index
        self.sample = sample
        self.records = 0
        self.bytes = 0


@dataclass(frozen=True)
class RunnerIdentity:
    """Whose partition a runner runs. The same for all its epochs."""

    job_id: str
    partition: int
    incarnation: int = 0
    layout: CheckpointLayout | None = None
    """The job's checkpoint directory, for sinks whose output waits there."""


class StageRunner:
    """The operators of one stage in one partition.

    Life cycle: construct; restore the backends; `open()`; for each epoch `begin_epoch`, any number of `batch`,
    `advance` and `idle`, then `finish_epoch` or `abort_epoch`; at the end `close()`. Not thread safe.
    """

    def __init__(self, plan: JobPlan, stage: int, identity: RunnerIdentity, emit: Emit) -> None:
        self._plan = plan
        self._stage = stage
        self._identity = identity
        self._emit = emit
        self._fans: dict[int, Fan] = {}
        self._gates: dict[int, Gate] = {}  # in topological order
        self._heads: dict[int, OperatorPort] = {}  # head operator -> the port its edges share
        self._inlets: dict[int, Inlet] = {}  # by edge
        self._vertices = {node: _uid_of(plan, head) for node, head in chain_heads(plan).items()}
        self.busy = BusyTime()
        self._samples_due = 0.0
        self._edges: list[tuple[int, EdgeWriter]] = []  # (producer, writer)
        self.sources = list(plan.sources) if stage == 0 else []
        self._rocksdb: Any = None
        self.epoch = -1
        self._active: set[int] = set()  # nodes that the current source reaches; in later stages all nodes
        self._build()

    # --- wiring

    def _build(self) -> None:
        for source in self.sources:
            self._fans[source.id] = Fan()
        for spec in self._plan.stages[self._stage].operators:
            if self._identity.partition < spec.parallelism or self._stage == 0:
                self._add_operator(spec)
        for consumer in (spec for stage in self._plan.stages for spec in stage.operators):
            for position, input_spec in enumerate(consumer.inputs):
                self._connect(consumer, position, input_spec)

    def _add_operator(self, spec: OperatorSpec) -> None:
        operator = _own_copy(spec.factory)()
        fan = Fan()
        operator.setup(self._context(spec), fan)
        self._fans[spec.id] = fan
        self._gates[spec.id] = Gate(operator, spec, self._vertices[spec.id])

    def _context(self, spec: OperatorSpec) -> OperatorContext:
        identity = self._identity
        keyed: KeyedStateBackend | None = None
        if spec.keyed:
            groups = key_group_range(identity.partition, self._plan.max_parallelism, spec.parallelism)
            keyed = make_keyed_backend(
                self._plan.settings.get(options.STATE_BACKEND),
                spec.uid,
                self._plan.max_parallelism,
                groups,
                self._backend_options(),
            )
        return OperatorContext(
            uid=spec.uid,
            name=spec.name,
            partition=identity.partition,
            parallelism=spec.parallelism,
            max_parallelism=self._plan.max_parallelism,
            job_id=identity.job_id,
            job_name=self._plan.name,
            attempt=max(identity.incarnation - 1, 0),
            keyed_backend=keyed,
            operator_backend=OperatorStateBackend(spec.uid),
            batch_mode=self._plan.batch_mode,
            job_parameters=self._plan.job_parameters,
            output_files=(
                StoredOutputFiles(identity.layout, spec.uid)
                if spec.sink is not None and identity.layout is not None
                else None
            ),
        )

    def _backend_options(self) -> Any:
        """Return the options that all keyed backends of this runner share; None for heap backends."""
        settings = self._plan.settings
        if backend_kind(settings.get(options.STATE_BACKEND)) == HEAP:
            return None
        if self._rocksdb is None:
            from headwater.state.rocksdb.options import DEFAULT_TIMERS_IN_MEMORY, RocksDBOptions

            directory = settings.get(options.ROCKSDB_DIRECTORY)
            self._rocksdb = RocksDBOptions(
                settings.get(options.ROCKSDB_MEMORY),
                Path(directory).expanduser() if directory else None,
                timers_in_memory=None if settings.get(options.ROCKSDB_TIMERS) == "heap" else DEFAULT_TIMERS_IN_MEMORY,
            )
        return self._rocksdb

    def _connect(self, consumer: OperatorSpec, position: int, spec: InputSpec) -> None:
        gate = self._gates.get(consumer.id)
        if spec.chained:
            fan = self._fans.get(spec.upstream)
            if gate is not None and fan is not None:
                port = (
                    OperatorPort(gate, spec.input_index, spec.upstream)
                    if gate.vertex == self._vertices[spec.upstream]
                    else BorderPort(gate, spec.input_index, spec.upstream, self.busy)
                )
                fan.add(port, spec.side_tag)
            return
        edge = edge_id(consumer.id, position)
        if gate is not None and consumer.stage == self._stage:
            # `StageInput` merges all edges into an operator, so they share one port and one watermark.
            head = self._heads.get(consumer.id)
            if head is None:
                head = self._heads[consumer.id] = OperatorPort(gate, spec.input_index)
            key_of = spec.key_selector if spec.exchange is Exchange.HASH else None
            sample = KeySample(key_of, self._plan.max_parallelism) if key_of is not None else None
            self._inlets[edge] = Inlet(head, spec.input_index, sample)
        fan = self._fans.get(spec.upstream)
        if fan is not None:
            writer = EdgeWriter(
                edge=edge,
                spec=spec,
                dest_stage=consumer.stage,
                dest_parallelism=consumer.parallelism,
                max_parallelism=self._plan.max_parallelism,
                partition=self._identity.partition,
                operator_name=consumer.name,
                emit=self._emit,
            )
            self._edges.append((spec.upstream, writer))
            fan.add(EdgePort(writer), spec.side_tag)

    # --- life cycle

    def open(self) -> None:
        """Open every operator. Call it after state is restored."""
        for gate in self._gates.values():
            gate.operator.open()

    def close(self) -> None:
        """Close every operator, then raise the first error, if any."""
        errors: list[Exception] = []
        for gate in self._gates.values():
            try:
                gate.operator.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def backends(self) -> list[KeyedStateBackend | OperatorStateBackend]:
        """Return all backends of this partition, always in the same order."""
        found: list[KeyedStateBackend | OperatorStateBackend] = []
        for gate in self._gates.values():
            context = gate.operator.context
            if context.keyed_backend is not None:
                found.append(context.keyed_backend)
            if context.operator_backend is not None:
                found.append(context.operator_backend)
        return found

    def keyed_backend(self, uid: str) -> KeyedStateBackend | None:
        """Return the keyed backend of operator `uid`, if this partition has it."""
        for gate in self._gates.values():
            if gate.spec.uid == uid:
                return gate.operator.context.keyed_backend
        return None

    def restore_split_operators(self, states: Mapping[str, OperatorStateBackend]) -> dict[str, OperatorStateBackend]:
        """Give split-scoped operators (watermark generators) the state of a split. For stage 0, before each split.

        Return the backends in use, by uid. The caller persists them with the split's position.
        """
        used: dict[str, OperatorStateBackend] = {}
        for gate in self._gates.values():
            if getattr(gate.operator, "split_scoped", False):
                context = gate.operator.context
                context.operator_backend = states.get(gate.spec.uid) or OperatorStateBackend(gate.spec.uid)
                context.operator_backend.begin_epoch()
                used[gate.spec.uid] = context.operator_backend
                gate.operator = gate.spec.factory()
                gate.operator.setup(context, self._fans[gate.spec.id])
                gate.operator.open()
        return used

    # --- epochs

    def begin_epoch(
        self,
        epoch: int,
        attempt_id: str,
        now_ms: int,
        watermarks: Mapping[str, int],
        *,
        source_id: int | None = None,
        channel: str | None = None,
    ) -> None:
        """Start an epoch with the watermarks of the last committed one.

        Stage 0 runs one split of one source at a time, and each split is a channel: ports that the source does not
        reach count as idle, and edges that it does not reach send nothing.
        """
        self.epoch = epoch
        self.busy.begin()
        for inlet in self._inlets.values():
            inlet.records = inlet.bytes = 0
        self._active = self._reached_from(source_id)
        for node, fan in self._fans.items():
            fan.records = 0
            fan.watermark = watermarks.get(at_output(self._uid(node)), MIN_WATERMARK)
            for port in fan.ports():
                if isinstance(port, OperatorPort):
                    port.watermark = fan.watermark
                    port.is_idle = node not in self._active
        for head, port in self._heads.items():
            port.watermark = watermarks.get(at_input(self._uid(head)), MIN_WATERMARK)
            port.is_idle = False
        for producer, writer in self._edges:
            writer.epoch = epoch
            writer.begin_channel(
                f"{producer}/{self._identity.partition if channel is None else channel}",
                self._fans[producer].watermark,
            )
        for gate in self._gates.values():
            gate.reset()
            gate.records_in = 0
            context = gate.operator.context
            context.epoch, context.attempt_id = epoch, attempt_id
            if context.keyed_backend is not None:
                context.keyed_backend.processing_time_ms = now_ms
        for gate in self._gates.values():
            self.busy.enter(gate.vertex)
            gate.operator.process_time(now_ms)
        self.busy.enter(None)

    def _reached_from(self, source_id: int | None) -> set[int]:
        if source_id is None:
            return set(self._fans)
        reached = {source_id}
        for gate in self._gates.values():  # topological order
            if any(port.producer in reached for port in gate.ports):
                reached.add(gate.spec.id)
        return reached

    def _uid(self, node: int) -> str:
        gate = self._gates.get(node)
        if gate is not None:
            return gate.spec.uid
        return next(source.uid for source in self.sources if source.id == node)

    def source_output(self, source_id: int) -> Fan:
        """Return the output of a source (stage 0)."""
        return self._fans[source_id]

    def chunk(self, edge: int, payload: memoryview | bytes) -> None:
        """Process a chunk of an edge in its head operator."""
        inlet = self._inlets[edge]
        inlet.bytes += len(payload)
        self.busy.enter(inlet.port.vertex)
        self.batch(edge, *decode_records(payload))
        self.busy.enter(None)

    def batch(self, edge: int, values: list[Any], timestamps: Timestamps) -> None:
        """Process records of an edge in its head operator."""
        inlet = self._inlets[edge]
        inlet.records += len(values)
        if inlet.sample is not None:
            inlet.sample.look_at(values)
        inlet.port.batch_of(inlet.input_index, values, timestamps)

    def advance(self, head: int, watermark: int) -> None:
        """Set the merged watermark of a head operator's edges. Ignored where the head has no such partition."""
        port = self._heads.get(head)
        if port is None:
            return  # the stage has operators of a higher parallelism, and an edge's end is told to all partitions
        self.busy.enter(port.vertex)
        port.advance(watermark)
        self.busy.enter(None)

    def idle(self, head: int, idle: bool) -> None:
        """Set whether all channels into a head operator are idle. Ignored as `advance` is."""
        if head in self._heads:
            self._heads[head].idle(idle)

    def finish_epoch(self, now_ms: int, *, ended: bool | None = None) -> EpochOutcome:
        """End the epoch: fire the last timers, let sinks prepare their commit, and send all buffered records."""
        outcome = EpochOutcome()
        timers: list[int] = []
        for gate in self._gates.values():
            operator = gate.operator
            self.busy.enter(gate.vertex)
            operator.process_time(now_ms)
            due = operator.next_processing_timer()
            if due is not None:
                timers.append(due)
        for gate in self._gates.values():
            self.busy.enter(gate.vertex)
            committables = gate.operator.prepare_commit()
            if committables:
                outcome.committables[gate.spec.uid] = [pickle.dumps(item, 5) for item in committables]
            outcome.records_in[gate.spec.uid] = gate.records_in
            context = gate.operator.context
            if context.metrics is not None:
                outcome.metrics[gate.spec.uid] = {context.partition: context.metrics.take_delta()}
        if self._plan.settings.get(options.TYPE_CHECK):
            for gate in self._gates.values():  # after snapshot_state(), which is part of prepare_commit()
                check_state_types(gate.operator.context)
        for producer, writer in self._edges:
            if producer not in self._active:
                continue
            at_end = self._fans[producer].watermark == MAX_WATERMARK if ended is None else ended
            self.busy.enter(self._vertices[producer])
            writer.end_channel(ended=at_end)
        self.busy.enter(None)
        self._measure(outcome.figures)
        outcome.next_timer_ms = min(timers, default=None)
        outcome.watermarks = self.watermarks()
        return outcome

    def _measure(self, figures: Figures) -> None:
        """Enter what was measured in the epoch that ends now."""
        self.busy.end(figures)
        figures.records_out = {self._uid(node): fan.records for node, fan in self._fans.items() if fan.records}
        figures.sent = {writer.edge: Traffic(writer.records, writer.bytes) for _, writer in self._edges if writer.bytes}
        figures.received = {
            edge: Traffic(each.records, each.bytes) for edge, each in self._inlets.items() if each.records
        }
        figures.idle = tuple({self._uid(producer) for producer, writer in self._edges if writer.idle})
        for gate in self._gates.values():
            backend = gate.operator.context.keyed_backend
            if backend is not None:
                figures.state_entries[gate.spec.uid] = backend.number_of_entries()
            due = gate.operator.next_event_timer()
            if due is not None:
                figures.event_timers[gate.spec.uid] = due
        if (now := perf_counter()) >= self._samples_due:
            self._samples_due = now + SAMPLES_SECONDS
            for inlet in self._inlets.values():
                if inlet.sample is not None and (sampling := inlet.sample.take()) is not None:
                    figures.key_samples[inlet.port.uid] = sampling

    def watermarks(self) -> dict[str, int]:
        """Where event time stands, in the form that `begin_epoch` takes."""
        found = {at_output(self._uid(node)): self._fans[node].watermark for node in self._active}
        found.update({at_input(self._uid(head)): port.watermark for head, port in self._heads.items()})
        return found

    def abort_epoch(self) -> None:
        """Give the epoch up. The owner of the backends rolls back the state."""
        for gate in self._gates.values():
            gate.operator.abort_epoch()
            if gate.operator.context.metrics is not None:
                gate.operator.context.metrics.take_delta()  # drop the attempt's counts: the replay counts again
