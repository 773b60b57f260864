"""Dead letters that come into an epoch once more, at the operator or source that refused them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.common.dead_letter import KEY, SOURCE, DeadLetter
from headwater.common.errors import HeadwaterError
from headwater.common.ids import MAX_WATERMARK
from headwater.common.rejected import REJECTED_TAG_ID, why_rejected
from headwater.graph.plan import Exchange, InputSpec, JobPlan, OperatorSpec
from headwater.runtime.stage.edge_ids import consumer_of
from headwater.runtime.stage.rejects import Rejects
from headwater.state.keys.frozen_keys import FrozenKeyOf
from headwater.state.keys.key_groups import KeyRouter

if TYPE_CHECKING:
    from headwater.runtime.stage.ports import Fan, Gate


class Replay:
    """Puts letters through in one partition of one stage. Made for one epoch.

    A letter has one place, which every partition finds by itself: that of its key; for a letter of stage 0 the task of
    the first source that reaches its operator; else a place made from its id. There the record goes into the operator
    as any other does, so a second refusal is as the first was. Then the letter is answered, in the same epoch: by a
    mark that it is done, or by a new letter. Both name it.
    """

    def __init__(
        self,
        plan: JobPlan,
        stage: int,
        partition: int,
        gates: Mapping[int, Gate],
        fans: Mapping[int, Fan],
        rejects: Sequence[Rejects],
    ) -> None:
        self._plan = plan
        self._stage = stage
        self._partition = partition
        self._gates = {gate.spec.uid: gate for gate in gates.values()}
        self._by_id = gates
        self._fans = fans
        self._sources = {source.uid: source for source in plan.sources} if stage == 0 else {}
        self._rejects = {each.uid: each for each in rejects}

    def put_through(self, letter: DeadLetter, source_id: int | None) -> None:
        """Put `letter` through, if its place is here. In stage 0 event time does not move with it."""
        if letter.operator_uid not in self._gates and letter.operator_uid not in self._sources:
            return
        rejects = self._rejects[letter.operator_uid]
        watermarks = {node: fan.watermark for node, fan in self._fans.items()} if self._stage == 0 else {}
        for node in watermarks:
            self._fans[node].watermark = MAX_WATERMARK
        try:
            if letter.stage == SOURCE:
                self._read_again(letter, rejects, source_id)
            else:
                self._process_again(letter, rejects, source_id)
        finally:
            for node, watermark in watermarks.items():
                self._fans[node].watermark = watermark

    def _read_again(self, letter: DeadLetter, rejects: Rejects, source_id: int | None) -> None:
        source = self._sources[letter.operator_uid]
        if source.id != source_id:
            return
        output = self._fans[source.id]
        try:
            records = list(source.source.read_again(letter.as_rejected()))
        except Exception as error:
            output.emit_side(REJECTED_TAG_ID, [letter.as_rejected(why_rejected(error))], None)
            return
        output.emit(records, None if letter.timestamp_ms is None else [letter.timestamp_ms] * len(records))
        rejects.replayed(letter)

    def _process_again(self, letter: DeadLetter, rejects: Rejects, source_id: int | None) -> None:
        try:
            value = letter.value()
            is_here = self._is_here(letter, value, source_id)
        except Exception as error:
            if self._is_first(letter, source_id):
                rejects.reject_again(letter, f"the record cannot be put through: {type(error).__name__}: {error}")
            return
        if not is_here:
            return
        timestamps: list[int | None] | None = None if letter.timestamp_ms is None else [letter.timestamp_ms]
        before = rejects.count
        rejects.replaying = letter
        try:
            if letter.stage == KEY:
                self._to_edges(letter, value, timestamps)
            else:
                gate = self._gates[letter.operator_uid]
                gate.ports[0].batch_of(letter.input_index, [value], timestamps)
        finally:
            rejects.replaying = None
        if rejects.count == before:
            rejects.replayed(letter)

    def _to_edges(self, letter: DeadLetter, value: Any, timestamps: list[int | None] | None) -> None:
        """Send the record to the one consumer that could not find its key. The other consumers have it already."""
        for port in self._fans[self._node(letter)].ports():
            writer = getattr(port, "writer", None)
            if writer is not None and writer.calls_user_code:
                consumer = self._plan.operator(consumer_of(writer.edge))
                if consumer.uid == letter.consumer_uid:
                    port.batch([value], timestamps)

    # --- the place of a letter

    def _node(self, letter: DeadLetter) -> int:
        gate = self._gates.get(letter.operator_uid)
        return self._sources[letter.operator_uid].id if gate is None else gate.spec.id

    def _is_first(self, letter: DeadLetter, source_id: int | None) -> bool:
        return self._first_source(self._node(letter)) == source_id if self._stage == 0 else self._partition == 0

    def _is_here(self, letter: DeadLetter, value: Any, source_id: int | None) -> bool:
        if self._stage == 0:
            return self._is_first(letter, source_id)
        spec = self._gates[letter.operator_uid].spec
        if letter.stage != KEY:
            target = self._target(spec, letter.input_index, value)
            if target is not None:
                return target == self._partition
        return int(letter.id, 16) % spec.parallelism == self._partition

    def _target(self, spec: OperatorSpec, input_index: int, value: Any) -> int | None:
        """The partition that the record itself names; None: any one."""
        inputs = [each for each in spec.inputs if each.input_index == input_index and not each.chained]
        if not inputs:
            if spec.keyed:
                raise HeadwaterError(f"the partition of its key is not known: '{spec.name}' has no key_by of its own")
            return None
        given: InputSpec = inputs[0]
        if given.exchange is Exchange.HASH:
            assert given.key_selector is not None
            router = KeyRouter(self._plan.max_parallelism, spec.parallelism)
            return int(router[FrozenKeyOf(given.key_selector)(value)])
        if given.exchange is Exchange.CUSTOM:
            assert given.partitioner is not None
            key = value if given.key_selector is None else given.key_selector(value)
            return given.partitioner(key, spec.parallelism)
        return 0 if given.exchange is Exchange.GLOBAL else None

    def _first_source(self, node: int) -> int:
        """Of stage 0: the first source whose records reach `node`."""
        gate = self._by_id.get(node)
        if gate is None:
            return node
        return min(self._first_source(port.producer) for port in gate.ports if port.producer is not None)
