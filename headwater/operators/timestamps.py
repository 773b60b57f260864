"""Assigns event timestamps to records, and makes the watermarks of one split or partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.common.errors import ConfigurationError, TimestampError, UserCodeError, short_repr
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.output_tag import BAD_TIMESTAMPS_TAG_ID
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.operators.base import Operator, OperatorContext, Output
from headwater.operators.user_function import NoRecord, last_given
from headwater.state.descriptors import ListStateDescriptor
from headwater.time.idleness import IdlenessTimer
from headwater.time.timestamps import DEFAULT_MAX_AHEAD_MS, are_plain, latest_usable, problem_with, to_timestamp
from headwater.time.watermarks import GeneratedWatermarks, WatermarkLogic, logic_of

STATE_NAME = "watermark-generator"


class TimestampsAndWatermarksOperator(Operator):
    """Runs a `WatermarkStrategy`. Drops watermarks from upstream, except the last one, as in Flink.

    It emits a watermark after each batch, and wherever a user's own generator emits one. With an interval, it emits
    periodic watermarks only in epochs that begin at least that long after the last epoch that had them; with 0, never.
    Without a timestamp assigner, records keep their timestamps, if any. Bad timestamps never change the watermark: they
    fail the job, or with `bad_timestamps='side-output'` their records go to `BAD_TIMESTAMPS`.

    Everything that the watermark depends on is in operator state, which is written when the epoch ends.
    """

    split_scoped = True
    """Directly after a source, its state belongs to the split, not to the partition that reads the split."""

    _last_emitted: int
    _idle: bool
    _last_due: int | None
    """Processing time of the last epoch with periodic watermarks; None without an interval."""
    _dirty: bool
    """Something has changed that is not in operator state yet."""

    def __init__(
        self,
        strategy: WatermarkStrategy,
        *,
        max_ahead_ms: int = DEFAULT_MAX_AHEAD_MS,
        bad_timestamps: str = "fail",
        watermark_interval_ms: int | None = None,
        source_name: str | None = None,
    ) -> None:
        if bad_timestamps not in ("fail", "side-output"):
            raise ConfigurationError(
                f"headwater.bad-timestamps: found {bad_timestamps!r}, expected 'fail' or 'side-output'"
            )
        self.strategy = strategy
        self.max_ahead_ms = max_ahead_ms
        self.fail_on_bad_timestamps = bad_timestamps == "fail"
        self.watermark_interval_ms = watermark_interval_ms
        self.source_name = source_name

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._extract = self.strategy.extractor()
        self._reload = False
        self._start_anew()

    def open(self) -> None:
        self._load()

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        stamps = timestamps if self._extract is None else self._assign(self._extract, values, timestamps)
        latest = latest_usable(self.context.processing_time_ms, self.max_ahead_ms)
        plain = stamps is not None and are_plain(stamps, latest)
        if stamps is not None and not plain:
            values, stamps = self._sort_out(values, stamps, latest)
        if not values:
            return
        self._dirty = True
        if self._idleness is not None:
            self._idleness.on_records(self.context.processing_time_ms)
        self._set_idle(False)
        if isinstance(self._logic, GeneratedWatermarks):
            self._emit_with_generator(self._logic, values, stamps)
            return
        if stamps is not None:
            known = stamps if plain else [stamp for stamp in stamps if stamp is not None]
            if known:
                self._logic.on_batch(max(known))
        self.output.emit(values, stamps)
        if self._due:
            self._advance(self._logic.periodic())

    def process_watermark(self, watermark: int) -> None:
        if watermark == MAX_WATERMARK:
            super().process_watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        """Ignore idleness of the inputs: this operator decides itself when it is idle."""

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        if self._reload:
            self._start_anew()
            self._load()
        self._due = self._is_due(now_ms)
        logic = self._logic
        if isinstance(logic, GeneratedWatermarks):
            self._emit_periodic(logic)
        elif self._due and self.watermark_interval_ms is not None:  # what was held back
            self._advance(logic.periodic())
        if self._idleness is not None:
            self._dirty = True  # the first look starts the clock
            self._idle = self._idle or self._idleness.is_idle(now_ms)
        if self._idle:
            # Emit it again in every epoch: another process may run the operator than in the last epoch.
            self.output.emit_idle(True)
        self._save()

    def next_processing_timer(self) -> int | None:
        if self._last_due is None or self.watermark_interval_ms is None:
            return None
        if not isinstance(self._logic, GeneratedWatermarks) and self._logic.periodic() <= self._last_emitted:
            return None
        return self._last_due + self.watermark_interval_ms

    def prepare_commit(self) -> list[Any]:
        self._save()
        return []

    def abort_epoch(self) -> None:
        self._reload = True

    def _assign(
        self, extract: Callable[[Any, int], Any], values: list[Any], timestamps: list[int | None] | None
    ) -> list[Any]:
        position = iter(values)
        try:
            if timestamps is None:
                return [extract(value, MIN_WATERMARK) for value in position]
            return [
                extract(value, MIN_WATERMARK if timestamp is None else timestamp)
                for value, timestamp in zip(position, timestamps, strict=True)
            ]
        except Exception as error:
            record = last_given(values, position)
            raise UserCodeError.from_exception(error, self.context.name, record, self.context.epoch) from error

    def _sort_out(self, values: list[Any], found: list[Any], latest: int) -> tuple[list[Any], list[int | None] | None]:
        """The slow path: check the timestamp of each record."""
        good: list[Any] = []
        stamps: list[int | None] = []
        bad: list[Any] = []
        for value, stamp in zip(values, found, strict=True):
            usable = to_timestamp(stamp, latest)
            if usable is None and not (stamp is None and self._extract is None):
                if self.fail_on_bad_timestamps:
                    raise self._bad_timestamp(value, stamp, latest)
                bad.append(value)
                continue
            good.append(value)
            stamps.append(usable)
        if bad:
            self.output.emit_side(BAD_TIMESTAMPS_TAG_ID, bad, None)
        return good, stamps

    def _bad_timestamp(self, value: Any, found: Any, latest: int) -> TimestampError:
        name = self.context.name
        where = f"source '{self.source_name}' (operator '{name}')" if self.source_name else f"operator '{name}'"
        problem = problem_with(found, latest, self.context.processing_time_ms)
        return TimestampError(
            f"{where}, epoch {self.context.epoch}: the timestamp {short_repr(found)} {problem}; record: "
            f"{short_repr(value)}; correct the timestamp assigner, or set headwater.bad-timestamps to 'side-output' "
            "(headwater.timestamps.max-ahead says how far ahead is too far)"
        )

    def _emit_with_generator(
        self, logic: GeneratedWatermarks, values: list[Any], stamps: list[int | None] | None
    ) -> None:
        """Call the user's generator for every record, and cut the batch wherever it emits a watermark."""
        start = 0
        for index, value in enumerate(values):
            stamp = None if stamps is None else stamps[index]
            try:
                watermark = logic.on_event(value, MIN_WATERMARK if stamp is None else stamp)
            except Exception as error:
                raise UserCodeError.from_exception(error, self.context.name, value, self.context.epoch) from error
            if watermark > self._last_emitted:
                end = index + 1
                self.output.emit(values[start:end], None if stamps is None else stamps[start:end])
                start = end
                self._advance(watermark)
        if start < len(values):
            self.output.emit(values[start:], None if stamps is None else stamps[start:])
        self._emit_periodic(logic)

    def _is_due(self, now_ms: int) -> bool:
        """Return True if this epoch has periodic watermarks."""
        interval, last = self.watermark_interval_ms, self._last_due
        if interval is None or interval <= 0:
            return interval is None
        if last is None or now_ms - last >= interval:
            self._last_due = now_ms
            self._dirty = True
            return True
        return now_ms == last  # the other call of the same epoch

    def _emit_periodic(self, logic: GeneratedWatermarks) -> None:
        if self._due:
            self._dirty = True
            try:
                watermark = logic.periodic()
            except Exception as error:
                where = NoRecord("on_periodic_emit()")
                raise UserCodeError.from_exception(error, self.context.name, where, self.context.epoch) from error
            self._advance(watermark)
        if logic.marked_idle is not None:
            self._set_idle(logic.marked_idle)
            logic.marked_idle = None

    def _advance(self, watermark: int) -> None:
        if watermark > self._last_emitted:
            self._last_emitted = watermark
            self.context.watermark = watermark
            self.output.emit_watermark(watermark)

    def _set_idle(self, idle: bool) -> None:
        if idle != self._idle:
            self._idle = idle
            self.output.emit_idle(idle)

    def _start_anew(self) -> None:
        self._logic: WatermarkLogic = logic_of(self.strategy)
        timeout_ms = self.strategy.idle_timeout_ms
        self._idleness = None if timeout_ms is None else IdlenessTimer(timeout_ms)
        self._last_emitted = MIN_WATERMARK
        self._idle = False
        self._last_due = None
        self._due = self.watermark_interval_ms is None
        self._dirty = False

    def _load(self) -> None:
        self._reload = False
        backend = self.context.operator_backend
        if backend is None:
            return
        for state in backend.get_list_state(_DESCRIPTOR).get():
            kind, logic_state, last_emitted, idle, idleness_state, *last_due = state  # the last if there is an interval
            self._last_due = last_due[0] if last_due and self.watermark_interval_ms is not None else None
            self._last_emitted = self.context.watermark = last_emitted
            self._idle = idle
            if kind == type(self._logic).__name__:  # otherwise the job has another strategy now, which starts anew
                self._logic.restore(logic_state)
            if self._idleness is not None:
                self._idleness.restore(idleness_state)

    def _save(self) -> None:
        backend = self.context.operator_backend
        if not self._dirty or backend is None:
            return
        idleness_state = None if self._idleness is None else self._idleness.state()
        state = (type(self._logic).__name__, self._logic.state(), self._last_emitted, self._idle, idleness_state)
        with_interval = () if self._last_due is None else (self._last_due,)
        backend.get_list_state(_DESCRIPTOR).update([state + with_interval])
        self._dirty = False


_DESCRIPTOR = ListStateDescriptor(STATE_NAME)
