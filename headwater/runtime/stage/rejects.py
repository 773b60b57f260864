"""What an operator refuses, and the way from there to the dead letters of the same epoch."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any, Final, Protocol

from headwater.common.dead_letter import FUNCTION, KEY, SINK, DeadLetter, letter_id
from headwater.common.errors import (
    HeadwaterError,
    InvalidKeyError,
    SerializationError,
    TimestampError,
    TypeMismatchError,
    UserCodeError,
    short_repr,
)
from headwater.common.rejected import REJECTED_TAG_ID
from headwater.graph.plan import OperatorSpec, SourceSpec
from headwater.operators.base import Operator
from headwater.runtime.epoch.refusals import Refusal, Refusals
from headwater.state.copying import all_captured

Timestamps = list[int | None] | None
Process = Callable[[list[Any], Timestamps], None]

OF_FUNCTIONS: Final = (UserCodeError, TypeMismatchError, TimestampError, InvalidKeyError)
OF_SINKS: Final = (SerializationError, TypeMismatchError)
"""Errors of a sink that are about a record. Others are not: the disk is full, the server is away."""

_LOOK_CHARS: Final = 2000
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class Letters(Protocol):
    """Where letters go: the output of the operator."""

    def emit_side(self, tag_id: str, values: list[Any], timestamps: Timestamps) -> None: ...


class Rejects:
    """The refused records of one operator or source, in one partition.

    An operator without state is called again for a batch at which it failed, without the record that it failed at. With
    state, or at a sink, that would count records twice: the attempt fails with a `Refusal`, and the driver runs the
    epoch again.
    """

    def __init__(self, spec: OperatorSpec | SourceSpec, letters: Letters, job_id: str) -> None:
        self._spec = spec
        self._letters = letters
        self._job_id = job_id
        self.count = 0
        """Letters in this epoch."""
        self.replaying: DeadLetter | None = None
        """The letter that the record of this moment comes from."""
        self._input_index = 0
        self._consumer = ""
        self.begin_epoch(0, 0, "", Refusals())

    @property
    def uid(self) -> str:
        return self._spec.uid

    def begin_epoch(self, epoch: int, now_ms: int, scope: str, refusals: Refusals) -> None:
        self.count = 0
        self._epoch = epoch
        self._now_ms = now_ms
        self._scope = scope
        self._got = 0
        self._careful = self._spec.uid in refusals.careful
        self._known = refusals.at(self._spec.uid, scope) if self._careful else {}

    def process(self, operator: Operator, values: list[Any], timestamps: Timestamps, input_index: int) -> None:
        """Let `operator` process the records that it does not refuse. Raises what is no refusal of a record."""
        spec = self._spec
        assert isinstance(spec, OperatorSpec)
        self._input_index = input_index

        def process(some: list[Any], their_timestamps: Timestamps) -> None:
            operator.read_ahead(some)
            operator.process_batch(some, their_timestamps, input_index)

        if self._can_be_called_again(spec, operator):
            # A function may change a record before it fails at a later one.
            self._process_again(process, values, all_captured(values), timestamps, FUNCTION)
        elif self._careful:
            self._process_one_by_one(process, values, timestamps)
        else:
            try:
                process(values, timestamps)
            except self._refusable(spec) as error:
                if not error.from_downstream and error.refusal is None:
                    error.refusal = Refusal(spec.uid, self._scope, None)
                raise

    def write_to_edge(self, consumer_uid: str, write: Process, values: list[Any], timestamps: Timestamps) -> None:
        """Write the records whose keys can be told. Nothing of a batch is written if `write` raises."""
        self._consumer = consumer_uid
        self._process_again(write, values, values, timestamps, KEY)

    @staticmethod
    def _can_be_called_again(spec: OperatorSpec, operator: Operator) -> bool:
        has_state = spec.keyed or spec.needs_slot or getattr(operator, "split_scoped", False)
        return not has_state and spec.sink is None

    @staticmethod
    def _refusable(spec: OperatorSpec) -> tuple[type[HeadwaterError], ...]:
        return OF_FUNCTIONS if spec.sink is None else OF_SINKS

    def _process_again(
        self, process: Process, values: list[Any], originals: list[Any], timestamps: Timestamps, stage: str
    ) -> None:
        """Process `values`; if that fails at a record, `originals`, which are the same records, without it."""
        done = 0
        try:
            process(values, timestamps)
            return
        except OF_FUNCTIONS as error:
            bad = self._bad(error)
        while bad is not None:
            self._process_some(process, originals, timestamps, range(done, done + bad), stage)
            self._process_some(process, originals, timestamps, range(done + bad, done + bad + 1), stage)
            done += bad + 1
            if done == len(originals):
                return
            try:
                process(*_some(originals, timestamps, range(done, len(originals))))
                return
            except OF_FUNCTIONS as error:
                bad = self._bad(error)
        for index in range(done, len(originals)):
            self._process_some(process, originals, timestamps, range(index, index + 1), stage)

    @staticmethod
    def _bad(error: HeadwaterError) -> int | None:
        """The index of the record at which a batch failed, if it is known. Raises what others raised."""
        if error.from_downstream:
            raise error
        return error.batch_index

    def _process_some(
        self, process: Process, originals: list[Any], timestamps: Timestamps, some: range, stage: str
    ) -> None:
        """Process `some` of the records, in one batch if they are good; refuse those that are not."""
        if not some:
            return
        try:
            process(*_some(originals, timestamps, some))
        except OF_FUNCTIONS as error:
            if error.from_downstream:
                raise
            if len(some) == 1:
                timestamp = None if timestamps is None else timestamps[some[0]]
                self._reject(originals[some[0]], timestamp, str(error), stage)
                return
            for index in some:
                self._process_some(process, originals, timestamps, range(index, index + 1), stage)

    def _process_one_by_one(self, process: Process, values: list[Any], timestamps: Timestamps) -> None:
        spec = self._spec
        assert isinstance(spec, OperatorSpec)
        for index, value in enumerate(values):
            timestamp = None if timestamps is None else timestamps[index]
            ordinal, self._got = self._got, self._got + 1
            look = _look(value)
            refusal = self._known.get(ordinal)
            if refusal is not None and refusal.look == look:
                self._reject(value, timestamp, refusal.error, FUNCTION if spec.sink is None else SINK)
                continue
            try:
                process([value], None if timestamps is None else [timestamp])
            except self._refusable(spec) as error:
                if not error.from_downstream and error.refusal is None:
                    error.refusal = Refusal(spec.uid, self._scope, ordinal, look, str(error))
                raise

    def replayed(self, letter: DeadLetter) -> None:
        """`letter` was put through again, and is done."""
        mark = letter.replayed(self._job_id, self._epoch, self._now_ms)
        self._letters.emit_side(REJECTED_TAG_ID, [mark], None)

    def _reject(self, value: Any, timestamp: int | None, error: str, stage: str) -> None:
        spec = self._spec
        number, self.count = self.count, self.count + 1
        again = self.replaying
        letter = DeadLetter(
            id=letter_id(self._job_id, spec.uid, self._epoch, self._now_ms, self._scope, stage, number),
            job_id=self._job_id,
            operator=spec.name,
            operator_uid=spec.uid,
            stage=stage,
            error=error,
            where=f"epoch {self._epoch}, {self._scope}",
            raw=_pickled(value) if again is None else again.raw,
            record=short_repr(value) if again is None else again.record,
            epoch=self._epoch,
            rejected_at_ms=self._now_ms,
            timestamp_ms=timestamp,
            input_index=0 if stage == KEY else self._input_index,
            consumer_uid=self._consumer if stage == KEY else "",
            replaces="" if again is None else again.id,
        )
        self._letters.emit_side(REJECTED_TAG_ID, [letter], None)

    def reject_again(self, letter: DeadLetter, error: str) -> None:
        """`letter` could not even be put through: its record cannot be read, say."""
        self.replaying, self._input_index, self._consumer = letter, letter.input_index, letter.consumer_uid
        try:
            self._reject(letter.record, letter.timestamp_ms, error, letter.stage)
        finally:
            self.replaying = None


def _some(originals: list[Any], timestamps: Timestamps, some: range) -> tuple[list[Any], Timestamps]:
    """Copies of these records, with their timestamps."""
    return (
        list(all_captured(originals[some.start : some.stop])),
        None if timestamps is None else timestamps[some.start : some.stop],
    )


def _look(value: Any) -> str:
    return _ADDRESS.sub("", short_repr(value, _LOOK_CHARS))


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, 5)
    except Exception:  # the letter has its repr
        return None
