"""The base of operators that run a user's function: its life cycle, and its errors."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import length_hint
from types import NoneType
from typing import Any

from headwater.common.errors import (
    ExternalSystemError,
    HeadwaterError,
    InvalidKeyError,
    PlanError,
    StateMigrationError,
    UserCodeError,
    short_repr,
)
from headwater.operators.base import Operator, OperatorContext, Output
from headwater.operators.functions.plain import CheckpointedFunction, Function
from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.state.copying import captured
from headwater.state.keyed_backend import NO_KEY
from headwater.state.keys.frozen_keys import frozen

_log = logging.getLogger(__name__)

_NOT_ITERABLE = "object is not iterable"


class NoRecord:
    """Replaces the record in an error that no record caused."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __repr__(self) -> str:
        return f"<none: raised in {self._where}>"


def last_given(values: Sequence[Any], position: Iterator[Any]) -> Any:
    """Return the record that `position`, an iterator over `values`, yielded last: where a comprehension stopped."""
    return values[last_index(values, position)]


def last_index(values: Sequence[Any], position: Iterator[Any]) -> int:
    """Return the index of `last_given`."""
    return max(len(values) - length_hint(position) - 1, 0)


def method_of(function: Any, name: str, operator: str) -> Callable[..., Any]:
    """Return the callable to run per record: `function.<name>`, or `function` itself if it is callable."""
    method = getattr(function, name, None)
    if callable(method) and not isinstance(function, type):
        return method  # type: ignore[no-any-return]
    if isinstance(function, type):
        raise PlanError(f"{operator}: expected a function, found the class {function.__name__}; pass an instance of it")
    if callable(function):
        return function  # type: ignore[no-any-return]
    raise PlanError(
        f"{operator}: expected a function, a lambda or an object with a method '{name}', found {short_repr(function)}"
    )


class UserFunctionOperator(Operator):
    """Opens, re-opens and closes the user's function, and turns its exceptions into `UserCodeError`.

    After an epoch is given up, the function is closed, and opened again before the next epoch, like Flink does when it
    restarts a task. So what a function builds in `open` keeps no traces of records that will be replayed.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self._opened = False
        self._reopen = False

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self._opened = self._reopen = False

    def open(self) -> None:
        self._open_function(restored=was_restored(self.context))

    def process_time(self, now_ms: int) -> None:
        if self._reopen:
            self._close_function(suppress=True)
            self._open_function(restored=True)
        super().process_time(now_ms)

    def prepare_commit(self) -> list[Any]:
        """Let the function write its operator state. Called on every operator at the end of each epoch."""
        if isinstance(self.function, CheckpointedFunction):
            try:
                self.function.snapshot_state(RuntimeContext(self.context, restored=True))
            except Exception as error:
                raise self.user_error(error, NoRecord("snapshot_state()")) from error
        return []

    def abort_epoch(self) -> None:
        self._reopen = self._opened

    def close(self) -> None:
        self._close_function(suppress=False)

    def user_error(self, error: BaseException, record: Any) -> HeadwaterError:
        """Return the exception to raise for `error`, which user code raised while it processed `record`."""
        if isinstance(error, ExternalSystemError):  # of a look-up, say: it says nothing about the record
            return ExternalSystemError(f"operator '{self.context.name}': {error}")
        made = UserCodeError.from_exception(error, self.context.name, record, self.context.epoch)
        if isinstance(error, TypeError) and str(error).endswith(_NOT_ITERABLE) and _raised_here(error):
            cause = f"{made.cause_repr}; the function must return a list or another iterable, or yield its results"
            shown = "".join(traceback.format_exception_only(error))  # no frame is the user's
            return UserCodeError(made.operator_name, made.record_repr, made.epoch, shown, cause)
        return made

    def failure(self, error: Exception, values: Sequence[Any], position: Iterator[Any]) -> HeadwaterError:
        """Like `user_error`, for the record that `position`, an iterator over `values`, yielded last."""
        index = last_index(values, position)
        made = self.user_error(error, values[index])
        made.batch_index = index
        return made

    def _open_function(self, *, restored: bool) -> None:
        runtime_context = RuntimeContext(self.context, restored)
        self._reopen = False
        where = "open()"
        try:
            if isinstance(self.function, CheckpointedFunction):
                where = "initialize_state()"
                self.function.initialize_state(runtime_context)
            where = "open()"
            if isinstance(self.function, Function) or has_life_cycle(self.function):
                self.function.open(runtime_context)
        except StateMigrationError:  # not the function's fault, and its text says what to do
            raise
        except (Exception, SystemExit) as error:
            raise self.user_error(error, NoRecord(where)) from error
        self._opened = True

    def _close_function(self, *, suppress: bool) -> None:
        if not self._opened:
            return
        self._opened = False
        if not (isinstance(self.function, Function) or has_life_cycle(self.function)):
            return
        try:
            self.function.close()
        except Exception as error:
            if not suppress:
                raise self.user_error(error, NoRecord("close()")) from error
            _log.warning("operator '%s': close() raised after a failed epoch", self.context.name, exc_info=True)


class KeyedOperator(UserFunctionOperator):
    """An operator whose function sees the state of the record's key."""

    def __init__(self, key_selector: Any, function: Any) -> None:
        super().__init__(function)
        self.key_selector = key_selector
        self.key_of = method_of(key_selector, "get_key", "key_by")

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        if context.keyed_backend is None:
            raise PlanError(f"operator '{context.name}' is keyed, but was set up without a keyed state backend")
        self._backend = context.keyed_backend

    def keyed(self, values: Iterable[Any]) -> Iterator[Any]:
        """`values`; while the caller has one, its key is the current one."""
        key_of, backend = self.key_of, self._backend
        for value in values:
            backend.current_key = key = key_of(value)
            if type(key) not in SURE_KEYS:
                backend.current_key = captured_key(key)
            yield value

    def read_ahead(self, values: list[Any]) -> None:
        if self._backend.reads_ahead:
            try:
                keys = dict.fromkeys(map(self.key_of, values))
                if not SURE_KEYS.issuperset(map(type, keys)):
                    keys = dict.fromkeys(map(captured, keys))
            except Exception:  # what is wrong with a record is said where it is processed
                return
            with contextlib.suppress(InvalidKeyError):
                self._backend.prefetch(keys)

    def next_event_timer(self) -> int | None:
        return self._backend.event_timers.peek()

    def process_watermark(self, watermark: int) -> None:
        self._backend.watermark = watermark
        super().process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        self._backend.processing_time_ms = now_ms
        super().process_time(now_ms)

    def abort_epoch(self) -> None:
        super().abort_epoch()
        self._backend.current_key = NO_KEY  # open() is called again, and must not see the state of a key

    def close(self) -> None:
        self._backend.current_key = NO_KEY
        super().close()

    def user_error(self, error: BaseException, record: Any) -> HeadwaterError:
        """Detect a bad key: an unhashable key fails only when the function first uses state."""
        problem: str | None = None
        if isinstance(error, InvalidKeyError):
            problem = str(error)
        elif isinstance(error, (TypeError, ValueError)):
            problem = key_problem(self._backend.current_key)
        if problem is None:
            return super().user_error(error, record)
        return InvalidKeyError(
            f"operator '{self.context.name}': {problem}; record: {short_repr(record)}; "
            "return a number, a string or a tuple of those from the key selector"
        )


SURE_KEYS = frozenset({str, int, bytes, bool, NoneType})
"""Exact classes of keys that never change and are always equal to themselves."""


def captured_key(key: Any) -> Any:
    """The key of a record, whatever is done to the record later; `InvalidKeyError` if it is not equal to itself."""
    if key != key:
        raise InvalidKeyError(f"the key is {key!r}, which is not equal to itself")
    own = captured(key)
    return key if own is key else frozen(own)


def _raised_here(error: BaseException) -> bool:
    """Return True if an operator raised `error` itself, not a function that it called."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__", "").startswith("headwater.operators.")


def key_problem(key: Any) -> str | None:
    """Return why `key` cannot be a key; None if it can."""
    if key is NO_KEY:
        return None
    try:
        hash(key)
    except TypeError:
        return f"the key {short_repr(key)} is a {type(key).__name__}, which is not hashable"
    if key != key:
        return f"the key is {short_repr(key)}, which is not equal to itself"
    return None


def was_restored(context: OperatorContext) -> bool:
    """Return True if the partition has state from before it was opened."""
    backends = (context.operator_backend, context.keyed_backend)
    return any(backend is not None and backend.number_of_entries() > 0 for backend in backends)


def has_life_cycle(function: Any) -> bool:
    """Return True if `function` has `open` and `close`. It need not extend `Function`, as in PyFlink."""
    return hasattr(function, "open") and hasattr(function, "close") and not isinstance(function, type)
