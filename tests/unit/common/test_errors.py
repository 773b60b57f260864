from __future__ import annotations

import pickle
import traceback

import pytest

from headwater.common import errors
from headwater.common.errors import HeadwaterError, UserCodeError, short_repr, user_traceback
from headwater.common.time import to_millis


def explode(record: object) -> None:
    raise ZeroDivisionError(f"no way for {record}")


def failure_of(record: object) -> UserCodeError:
    try:
        explode(record)
    except ZeroDivisionError as error:
        return UserCodeError.from_exception(error, "enrich", record, 7)
    raise AssertionError


def test_a_user_error_shows_operator_epoch_record_and_the_users_own_line() -> None:
    text = str(failure_of(("a", 1)))
    assert "operator 'enrich' failed in epoch 7" in text
    assert "('a', 1)" in text
    assert "in explode" in text
    assert 'raise ZeroDivisionError(f"no way for {record}")' in text


def test_a_user_error_survives_the_way_between_processes() -> None:
    before = failure_of({"k": 1})
    after = pickle.loads(pickle.dumps(before))
    assert str(after) == str(before)
    assert (after.operator_name, after.epoch, after.record_repr) == ("enrich", 7, "{'k': 1}")


def test_frames_of_headwater_are_stripped_but_the_users_stay() -> None:
    def call_through_headwater() -> None:
        to_millis("5 s")  # type: ignore[arg-type]

    try:
        call_through_headwater()
    except HeadwaterError as error:
        shown, full = user_traceback(error), "".join(traceback.format_exception(error))
    assert "common/time.py" in full
    assert "common/time.py" not in shown
    assert "call_through_headwater" in shown


def test_a_traceback_of_headwaters_frames_alone_is_kept() -> None:
    try:
        to_millis("5 s")  # type: ignore[arg-type]
    except HeadwaterError as error:
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next
        assert "common/time.py" in user_traceback(error)


def test_causes_of_a_user_error_are_shown() -> None:
    try:
        try:
            explode(1)
        except ZeroDivisionError as inner:
            raise LookupError("outer") from inner
    except LookupError as error:
        shown = user_traceback(error)
    assert "no way for 1" in shown
    assert "direct cause" in shown
    assert "outer" in shown


def test_a_long_or_broken_repr_does_not_hurt() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    assert short_repr("x" * 1000).endswith("... (1002 characters)")
    assert len(short_repr("x" * 1000)) < 550
    assert "Broken" in short_repr(Broken())


@pytest.mark.parametrize(
    "error",
    [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, HeadwaterError)],
)
def test_every_error_is_in_the_one_tree_and_can_be_pickled(error: type[HeadwaterError]) -> None:
    made = error.from_exception(ValueError("no"), "f", 1, 7) if issubclass(error, UserCodeError) else error("text")
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is error
    assert str(copy) == str(made)


def test_an_error_of_the_file_system_names_the_file() -> None:
    missing = FileNotFoundError(2, "No such file or directory", "/data/in")
    assert "/data/in" in UserCodeError.from_exception(missing, "read", 1, 0).cause_repr
