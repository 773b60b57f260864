"""Runs the operators of one stage in one partition: wiring, watermarks, epochs. Knows no Spark and no sockets.

The same runner works in a slot (stateful stages), in a Python worker (stateless stages) and for the splits of stage 0.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from headwater.common import config_options as options
from headwater.common.dead_letter import DeadLetter
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.graph.plan import JobPlan
from headwater.operators.type_check import check_state_types
from headwater.runtime.epoch.chunk import decode_records
from headwater.runtime.epoch.figures import Figures, Traffic
from headwater.runtime.epoch.messages import EpochOutcome
from headwater.runtime.epoch.refusals import Refusals
from headwater.runtime.stage.busy_time import BusyTime
from headwater.runtime.stage.edges import Emit
from headwater.runtime.stage.ports import Fan, OperatorPort, Timestamps
from headwater.runtime.stage.replay import Replay
from headwater.runtime.stage.wiring import RunnerIdentity, Wiring
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.time.watermark_keys import at_input, at_output

SAMPLES_SECONDS = 1.0
"""How often a partition reports its most frequent keys."""


class StageRunner:
    """The operators of one stage in one partition.

    Life cycle: construct; restore the backends; `open()`; for each epoch `begin_epoch`, any number of `batch`,
    `advance` and `idle`, then `finish_epoch` or `abort_epoch`; at the end `close()`. Not thread safe.
    """

    def __init__(self, plan: JobPlan, stage: int, identity: RunnerIdentity, emit: Emit) -> None:
        self._plan = plan
        self._stage = stage
        self._identity = identity
        self.busy = BusyTime()
        wiring = Wiring(plan, stage, identity, emit, self.busy)
        self.sources = wiring.sources
        self._vertices = wiring.vertices
        self._fans = wiring.fans
        self._gates = wiring.gates
        self._heads = wiring.heads
        self._inlets = wiring.inlets
        self._edges = wiring.edges
        self._rejects = wiring.rejects
        self._samples_due = 0.0
        self.epoch = -1
        self._active: set[int] = set()  # nodes that the current source reaches; in later stages all nodes

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
        refusals: Refusals | None = None,
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
        scope = f"partition {self._identity.partition}" if channel is None else f"split {channel}"
        for rejects in self._rejects:
            rejects.begin_epoch(epoch, now_ms, scope, refusals or Refusals())
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

    def replay(self, letters: Sequence[DeadLetter], source_id: int | None = None) -> None:
        """Put those dead letters through again that are for this partition; in stage 0, for this source.

        Called in an epoch that reads nothing, before anything else comes.
        """
        if letters:
            replay = Replay(self._plan, self._stage, self._identity.partition, self._gates, self._fans, self._rejects)
            for letter in letters:
                replay.put_through(letter, source_id)

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

    def finish_epoch(self, now_ms: int, *, ended: bool | None = None, durable: bool = True) -> EpochOutcome:
        """End the epoch: fire the last timers, let operators emit what they held back and sinks prepare their commit.

        Then send all buffered records. Without `durable`, the caller calls `make_durable` before the epoch counts.
        """
        outcome = EpochOutcome()
        timers: list[int] = []
        for gate in self._gates.values():
            operator = gate.operator
            self.busy.enter(gate.vertex)
            operator.process_time(now_ms)
            if gate.holds_back and gate.spec.id in self._active:
                gate.end_epoch()
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
        for rejects in self._rejects:
            if rejects.count:
                outcome.rejected[rejects.uid] = outcome.rejected.get(rejects.uid, 0) + rejects.count
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
        if durable:
            self.make_durable()
        return outcome

    def make_durable(self) -> None:
        """See that what the epoch's sinks have prepared can survive a power cut."""
        for gate in self._gates.values():
            if gate.spec.sink is not None:
                gate.operator.make_durable()

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
