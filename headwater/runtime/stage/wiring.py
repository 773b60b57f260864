"""Builds the operators of one stage in one partition, and connects them to each other and to the stage's edges."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import config_options as options
from headwater.common.rejected import REJECTED_TAG_ID
from headwater.graph.chains import chain_heads
from headwater.graph.plan import Exchange, InputSpec, JobPlan, OperatorSpec, SourceSpec
from headwater.operators.base import Operator, OperatorContext
from headwater.operators.type_check import TypeCheckOperator
from headwater.runtime.stage.busy_time import BusyTime
from headwater.runtime.stage.edge_ids import consumer_of, edge_id
from headwater.runtime.stage.edges import EdgeWriter, Emit
from headwater.runtime.stage.key_sample import KeySample
from headwater.runtime.stage.ports import BorderPort, EdgePort, Fan, Gate, Inlet, OperatorPort
from headwater.runtime.stage.rejects import Rejects
from headwater.state.backends import HEAP, backend_kind, make_keyed_backend
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.keys.key_groups import key_group_range
from headwater.state.operator_backend import OperatorStateBackend


@dataclass(frozen=True)
class RunnerIdentity:
    """Whose partition a runner runs. The same for all its epochs."""

    job_id: str
    partition: int
    incarnation: int = 0
    layout: CheckpointLayout | None = None
    """The job's checkpoint directory, for sinks whose output waits there."""


class Wiring:
    """The operators of one stage in one partition, with all that leads into, between and out of them."""

    def __init__(self, plan: JobPlan, stage: int, identity: RunnerIdentity, emit: Emit, busy: BusyTime) -> None:
        self._plan = plan
        self._stage = stage
        self._identity = identity
        self._emit = emit
        self._busy = busy
        self._rocksdb: Any = None
        self.sources = list(plan.sources) if stage == 0 else []
        self.vertices = {node: _uid_of(plan, head) for node, head in chain_heads(plan).items()}
        """{node: uid of the head of its vertex}"""
        self.fans: dict[int, Fan] = {}
        self.gates: dict[int, Gate] = {}
        """In topological order."""
        self.heads: dict[int, OperatorPort] = {}
        """{head operator: the port that its edges share}"""
        self.inlets: dict[int, Inlet] = {}
        """By edge."""
        self.edges: list[tuple[int, EdgeWriter]] = []
        """Out of the stage: (producer, writer)."""
        self.rejects: list[Rejects] = []
        self._build()

    def _build(self) -> None:
        for source in self.sources:
            self.fans[source.id] = Fan()
        for spec in self._plan.stages[self._stage].operators:
            if self._identity.partition < spec.parallelism or self._stage == 0:
                self._add_operator(spec)
        for consumer in (spec for stage in self._plan.stages for spec in stage.operators):
            for position, input_spec in enumerate(consumer.inputs):
                self._connect(consumer, position, input_spec)
        self._connect_rejects()

    def _connect_rejects(self) -> None:
        """Connect operators, sources and the type checks behind them with the readers of their dead letters."""
        specs: list[OperatorSpec | SourceSpec] = [*self.sources, *(gate.spec for gate in self.gates.values())]
        for spec in specs:
            producer = self.fans[spec.id]
            if isinstance(spec, OperatorSpec) and isinstance(self.gates[spec.id].operator, TypeCheckOperator):
                producer = self.fans.get(spec.inputs[0].upstream, producer)
            if not producer.sides.get(REJECTED_TAG_ID):
                continue
            rejects = Rejects(spec, producer, self._identity.job_id)
            self.rejects.append(rejects)
            if isinstance(spec, OperatorSpec):
                self.gates[spec.id].rejects = rejects
            for port in self.fans[spec.id].ports():
                if isinstance(port, EdgePort) and port.writer.calls_user_code:
                    port.reject_to(rejects, self._plan.operator(consumer_of(port.writer.edge)).uid)

    def _add_operator(self, spec: OperatorSpec) -> None:
        operator = _own_copy(spec.factory)()
        fan = Fan()
        operator.setup(self._context(spec), fan)
        self.fans[spec.id] = fan
        self.gates[spec.id] = Gate(operator, spec, self.vertices[spec.id])

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
        gate = self.gates.get(consumer.id)
        if spec.chained:
            fan = self.fans.get(spec.upstream)
            if gate is not None and fan is not None:
                port = (
                    OperatorPort(gate, spec.input_index, spec.upstream)
                    if gate.vertex == self.vertices[spec.upstream]
                    else BorderPort(gate, spec.input_index, spec.upstream, self._busy)
                )
                fan.add(port, spec.side_tag)
            return
        edge = edge_id(consumer.id, position)
        if gate is not None and consumer.stage == self._stage:
            # `StageInput` merges all edges into an operator, so they share one port and one watermark.
            head = self.heads.get(consumer.id)
            if head is None:
                head = self.heads[consumer.id] = OperatorPort(gate, spec.input_index)
            key_of = spec.key_selector if spec.exchange is Exchange.HASH else None
            sample = KeySample(key_of, self._plan.max_parallelism) if key_of is not None else None
            self.inlets[edge] = Inlet(head, spec.input_index, sample)
        fan = self.fans.get(spec.upstream)
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
            self.edges.append((spec.upstream, writer))
            fan.add(EdgePort(writer), spec.side_tag)


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
