"""The way of a batch and of a watermark between operators: an operator's inputs behind one gate, and its output.

Called per batch and per watermark: the hot path of every stage.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from headwater.common.errors import HeadwaterError, UserCodeError, short_repr, user_traceback
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.graph.plan import OperatorSpec
from headwater.operators.base import Operator
from headwater.runtime.stage.busy_time import BusyTime
from headwater.runtime.stage.edges import EdgeWriter
from headwater.runtime.stage.key_sample import KeySample
from headwater.runtime.stage.rejects import Rejects
from headwater.state.copying import all_captured

Timestamps = list[int | None] | None


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
                if self._gate.rejects is not None:
                    self._gate.rejects.process(operator, values, timestamps, input_index)
                    return
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
        self.rejects: Rejects | None = None
        """None: nobody takes what the operator refuses."""
        self.records_in = 0
        self.holds_back = type(operator).end_epoch is not Operator.end_epoch
        """The operator may emit in `end_epoch`."""
        self._watermark = MIN_WATERMARK
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
        # The operator may be ahead (it generates watermarks) or behind (it defers them until the end of the epoch).
        if watermark > self._watermark and watermark > self.operator.context.watermark:
            self._watermark = watermark
            try:
                if watermark == MAX_WATERMARK:
                    self.operator.end_of_input()
                self.operator.process_watermark(watermark)
            except SystemExit as error:
                raise self.exited(error, f"none: the watermark became {watermark}") from error

    def end_epoch(self) -> None:
        try:
            self.operator.end_epoch()
        except SystemExit as error:
            raise self.exited(error, "none: the epoch ended") from error

    def exited(self, error: SystemExit, record: str) -> UserCodeError:
        """Return the error to raise if user code called sys.exit(): it must not end headwater's process."""
        epoch = self.operator.context.epoch
        return UserCodeError(self.spec.name, f"<{record}>", epoch, user_traceback(error), repr(error))

    def reset(self) -> None:
        """Set the operator's watermark from its ports, without emitting it downstream."""
        self._idle = False
        watermark = min((port.watermark for port in self.ports if not port.is_idle), default=MIN_WATERMARK)
        self._watermark = self.operator.context.watermark = watermark
        if self.operator.context.keyed_backend is not None:
            self.operator.context.keyed_backend.watermark = watermark


class EdgePort:
    """A port that writes to an edge out of the stage."""

    def __init__(self, writer: EdgeWriter) -> None:
        self.writer = writer
        self.batch = writer.write
        self.advance = writer.advance

    def reject_to(self, rejects: Rejects, consumer_uid: str) -> None:
        """Records whose key or partition cannot be told go to the producer's rejects."""
        self.batch = partial(rejects.write_to_edge, consumer_uid, self.writer.write)

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
        self._deliver(self.main, values, timestamps)

    def emit_side(self, tag_id: str, values: list[Any], timestamps: Timestamps) -> None:
        self._deliver(self.sides.get(tag_id, []), values, timestamps)

    def emit_watermark(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            for port in self.ports():
                port.advance(watermark)

    def emit_idle(self, idle: bool) -> None:
        for port in self.ports():
            port.idle(idle)

    def _deliver(self, ports: list[Port], values: list[Any], timestamps: Timestamps) -> None:
        """Each consumer gets records of its own: one that changes them in place must not be seen by the others.

        Edges may share: they change nothing. But they hold records until a chunk is full, while operators run.
        """
        self.records += len(values)
        try:
            for port in ports[1:]:
                shared = isinstance(port, EdgePort) and isinstance(ports[0], EdgePort)
                copies = list(values) if shared else list(all_captured(values))
                port.batch(copies, None if timestamps is None else [*timestamps])
            if ports:
                ports[0].batch(values, timestamps)
        except HeadwaterError as error:
            error.from_downstream = True
            raise


class Inlet:
    """Where the chunks of one edge enter the stage."""

    def __init__(self, port: OperatorPort, input_index: int, sample: KeySample | None) -> None:
        self.port = port
        self.input_index = input_index
        self.sample = sample
        self.records = 0
        self.bytes = 0
