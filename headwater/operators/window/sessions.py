"""Session windows with their default trigger. The sessions of a key are one value; timers are moved late.

The general operator makes window objects, merges sets of them and moves timers for each record. Here a record extends a
tuple. A session's timer stays where it was first set. If the session has grown when the timer is due, the timer is set
again. So a session costs a timer per advance of time, not per record.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple, cast

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.operators.user_function import method_of
from headwater.operators.window.base import MAX_RESULTS_HELD, SESSIONS, FiredWindow, WindowOperatorBase
from headwater.operators.window.settings import Aggregated, Buffered, Reduced, WindowSettings
from headwater.state.copying import captured, protective_copy
from headwater.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headwater.state.folding import FoldedValues
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.merging import merge_namespaces
from headwater.state.timers import TimerQueue
from headwater.time.assigners_session import SessionWindows
from headwater.time.windows import TimeWindow

Session = tuple[int, int, int, Any]
"""(start, end, id, content): the id is the session's first start, which no other session of the key has."""


class _Content(NamedTuple):
    """How the content of a session changes. `id` is the session's id, `held` the content in its tuple."""

    first: Callable[[int, Any], Any]
    """(id, value) -> held"""
    add: Callable[[int, Any, Any], Any]
    """(id, held, value) -> held"""
    merge: Callable[[int, Any, int, Any], Any]
    """(id, held, other id, held by the other) -> held"""
    elements: Callable[[int, Any], list[Any]]
    """(id, held) -> elements for the window function, maybe none; the function may change them"""
    clear: Callable[[int], None]


class SessionWindowOperator(WindowOperatorBase):
    """Sessions of each key: tuples that do not overlap. A session fires when time passes its end.

    Its timer is due at its end, or earlier. With an allowed lateness, a second timer is due when the lateness is over.
    """

    state_name = SESSIONS

    def __init__(self, key_selector: Any, settings: WindowSettings) -> None:
        super().__init__(key_selector, settings)
        assert isinstance(settings.assigner, SessionWindows)
        self._gap_of = settings.assigner.gap_of
        self._lateness = settings.allowed_lateness_ms if self._event_time else 0

    def open(self) -> None:
        self._sessions = cast(FoldedValues, self._backend.get_state(ValueStateDescriptor(SESSIONS)))
        self._content = _content(self.settings, self._backend)
        self._timers: TimerQueue = self._backend.event_timers if self._event_time else self._backend.processing_timers
        super().open()

    # -- records ------------------------------------------------------------------------------------------------------

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if self._event_time:
            self._check_timestamps(values, timestamps)
            times: Any = timestamps
        else:
            times = repeat(self.context.processing_time_ms)
        gap_of = self._gap_of
        late: list[int] = []
        position = iter(values)
        try:
            for index, (value, time) in enumerate(zip(self.keyed(position), times)):  # noqa: B905 - `times` may be endless
                if not self._add(value, time, time + gap_of(value)):
                    late.append(index)
        except Exception as error:
            raise self.failure(error, values, position) from error
        if late and timestamps is not None:
            self._late([values[index] for index in late], [timestamps[index] for index in late])
        self._emit_results()

    def _add(self, value: Any, start: int, end: int) -> bool:
        """Add a record, which extends from `start` to `end`, to its session. Return False if that session is over."""
        now = self._now()
        content = self._content
        joined: Session | None = None
        apart: tuple[Session, ...] = ()
        follows_by_timer = True
        for session in self._sessions.live() or ():
            if session[0] > end or start > session[1]:
                apart += (session,)
                continue
            if joined is None:
                joined = session
                follows_by_timer = session[1] - 1 > now
            else:
                joined = self._join(joined, session)
                follows_by_timer = False
        if joined is None:
            if end - 1 + self._lateness <= now:
                return False
            joined = (start, end, start, content.first(start, value))
            follows_by_timer = False
        else:
            old_start, old_end, id, held = joined
            joined = (min(old_start, start), max(old_end, end), id, content.add(id, held, value))
        self._sessions.update((*apart, joined), given_away=True)
        fired = joined[1] - 1 <= now
        if not follows_by_timer:
            self._set_timer(joined, after_firing=fired)
        if fired:
            self._fire(joined, start)
        return True

    def _join(self, one: Session, other: Session) -> Session:
        held = self._content.merge(one[2], one[3], other[2], other[3])
        return min(one[0], other[0]), max(one[1], other[1]), one[2], held

    def _set_timer(self, session: Session, after_firing: bool) -> None:
        due = session[1] - 1 + (self._lateness if after_firing else 0)
        self._timers.register(min(due, MAX_WATERMARK), self._backend.current_key, session[2])

    def _now(self) -> int:
        """Return the time that ends sessions. In processing time, ended sessions are gone before records come."""
        return self.context.watermark if self._event_time else MIN_WATERMARK

    # -- time ---------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        # As in Flink, the functions already see the new watermark while the sessions that it ends are evaluated.
        reached, self.context.watermark = self.context.watermark, watermark
        if self._event_time:
            self._pop_timers(watermark, reached)
        super().process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        super().process_time(now_ms)
        if not self._event_time:
            self._pop_timers(now_ms, None)

    def next_processing_timer(self) -> int | None:
        return None if self._event_time else self._timers.peek()

    def end_of_input(self) -> None:
        """STREAMING drops the processing-time sessions that are open, as Flink does; BATCH fires them."""
        if self.context.batch_mode and not self._event_time:
            self._pop_timers(MAX_WATERMARK, None)

    def _pop_timers(self, up_to: int, reached: int | None) -> None:
        first = self._timers.peek()
        if first is None or first > up_to:
            return
        backend = self._backend
        for timestamp, key, id in self._timers.pop_due(up_to):
            backend.current_key = key
            session = next((each for each in self._sessions.live() or () if each[2] == id), None)
            if session is None:
                continue  # it was merged with another session
            if reached is not None:
                # State expires by this clock: it must not pass sessions that are not evaluated yet.
                backend.watermark = max(timestamp, reached)
            try:
                self._on_timer(timestamp, session)
            except Exception as error:
                raise self.user_error(error, FiredWindow(TimeWindow(session[0], session[1]), key)) from error
            if len(self._results.values) >= MAX_RESULTS_HELD:
                self._emit_results()
        self._emit_results()

    def _on_timer(self, timestamp: int, session: Session) -> None:
        last = session[1] - 1
        if timestamp < last:
            self._set_timer(session, after_firing=False)  # it has grown since
            return
        if timestamp == last:
            self._fire(session, timestamp)
        if timestamp < min(last + self._lateness, MAX_WATERMARK):
            self._set_timer(session, after_firing=True)
        else:
            self._end(session)

    def _fire(self, session: Session, timestamp: int) -> None:
        start, end, id, held = session
        elements = self._content.elements(id, held)
        if self._evaluate is None:
            self._add_results(elements, timestamp)
        elif elements:
            window = TimeWindow(start, end)
            self._add_results(self._evaluate(captured(self._backend.current_key), window, elements), timestamp)

    def _end(self, session: Session) -> None:
        left = tuple(each for each in self._sessions.live() or () if each[2] != session[2])
        self._sessions.update(left or None, given_away=True)
        self._content.clear(session[2])
        self._call_clear(TimeWindow(session[0], session[1]), None)


def _content(settings: WindowSettings, backend: KeyedStateBackend) -> _Content:
    contents = settings.contents
    if isinstance(contents, Buffered):
        return _buffered(backend)
    return _reduced(contents) if isinstance(contents, Reduced) else _aggregated(contents)


def _reduced(contents: Reduced) -> _Content:
    """Keep the reduced value in the session's tuple."""
    reduce = method_of(contents.function, "reduce", "reduce")

    def fold(one: Any, other: Any) -> Any:
        return other if one is None else one if other is None else _owned(reduce(one, other), one)

    return _Content(
        first=lambda id, value: value,
        add=lambda id, held, value: fold(held, value),
        merge=lambda id, held, other_id, other: fold(held, other),
        elements=lambda id, held: [] if held is None else [protective_copy(held)],
        clear=lambda id: None,
    )


def _aggregated(contents: Aggregated) -> _Content:
    """Keep the accumulator in the session's tuple."""
    create, add, result_of = contents.function.create_accumulator, contents.function.add, contents.function.get_result

    def elements(id: int, held: Any) -> list[Any]:
        result = result_of(held)
        return [] if result is None else [protective_copy(result)]

    return _Content(
        first=lambda id, value: captured(add(value, create())),
        add=lambda id, held, value: _owned(add(value, held), held),
        merge=lambda id, held, other_id, other: _owned(contents.function.merge(held, other), held),
        elements=elements,
        clear=lambda id: None,
    )


def _owned(folded: Any, held: Any) -> Any:
    """What a function made of `held`, to be held from now on: its own objects are copied."""
    return folded if folded is held else captured(folded)


def _buffered(backend: KeyedStateBackend) -> _Content:
    """Keep the elements in a list state of their own: appending to a long session must not copy it."""
    state: Any = backend.get_namespaced_state(ListStateDescriptor(f"{SESSIONS}:elements"))

    def add(id: int, held: None, value: Any) -> None:
        backend.current_namespace = id
        state.add(value)

    def merge(id: int, held: None, other_id: int, other: None) -> None:
        merge_namespaces(backend, state, id, [other_id])

    def elements(id: int, held: None) -> list[Any]:
        backend.current_namespace = id
        return state.get()  # type: ignore[no-any-return]

    def clear(id: int) -> None:
        backend.current_namespace = id
        state.clear()

    return _Content(first=lambda id, value: add(id, None, value), add=add, merge=merge, elements=elements, clear=clear)
