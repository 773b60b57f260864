"""What can be known about functions without calling them."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import pytest

from headwater.common.callables import accepts, signature_text, unfit


class Adder:
    def __call__(self, a: int, b: int) -> int:
        return a + b

    def method(self, a: int) -> int:
        return a


def with_one(function: Any) -> Any:
    @wraps(function)
    def inner(value: Any) -> Any:
        return function(value, 1)

    return inner


class Decorated:
    @with_one
    def method(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        (lambda: 0, {0}),
        (lambda a: a, {1}),
        (lambda a, b=1: a, {1, 2}),
        (lambda *values: 0, {0, 1, 2, 3}),
        (lambda a, *, b: a, set()),
        (Adder(), {2}),
        (Adder().method, {1}),
        (partial(Adder(), 1), {1}),
        (str.upper, {1}),
        (with_one(lambda a, b: a), {1}),  # what the decorator takes counts, not what it decorates
        (Decorated().method, {0}),
        (iter, {0, 1, 2, 3}),  # a builtin that does not tell: it gets the benefit of the doubt
    ],
)
def test_how_many_arguments_a_function_takes(function: Any, counts: set[int]) -> None:
    assert {count for count in range(4) if accepts(function, count)} == counts


def test_functions_in_errors() -> None:
    assert signature_text(lambda a, b: a) == "a lambda of (a, b)"
    assert signature_text(test_functions_in_errors).startswith("test_functions_in_errors()")
    assert signature_text(Adder()) == "Adder(a: 'int', b: 'int') -> 'int'"
    assert signature_text(iter) == "iter(...)"


def test_what_cannot_be_called_so() -> None:
    assert unfit(lambda a, b: a, 2) is None
    assert unfit(lambda a, b: a, 1) == "a lambda of (a, b)"
    assert unfit(7, 1) == "7"
