"""What a change of a field's annotation does to stored values."""

from __future__ import annotations

import typing
from typing import Annotated, Any, Literal, Optional, TypeVar

import pytest

from headwater.state.evolution.annotations import annotation_change, annotation_text

T = TypeVar("T")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int", "int | None"),
        ("Optional[int]", "int | None"),
        ("typing.Union[None, int]", "Optional[int]"),
        ("Union[int, Union[str, None]]", "None | str | int"),
        ("List[int]", "list[int]"),
        ("decimal.Decimal", "Decimal"),
        ("'Payment'", "Payment"),
        ("int", "Any"),
        ("Any", "int"),
        ("", "int"),
        ("int", "object"),
        ("list", "list[int]"),
        ("list[int]", "Sequence[int]"),
        ("bool", "int"),
        ("Literal['a', 'b']", "str"),
        ("Literal['a']", "Literal['a', 'b']"),
        ("Annotated[int, 'cents']", "int"),
        ("dict[str, int]", "Mapping[str, int]"),
        ("int | float", "float | int"),
        ("int", "float | int"),
    ],
)
def test_values_stay(old: str, new: str) -> None:
    change = annotation_change(old, new)
    assert change.possible and change.convert is None


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("int", "float", 3, 3.0),
        ("int", "float", None, None),  # against its annotation, but there
        ("int", "float", "x", "x"),
        ("bool", "float", True, 1.0),
        ("int | None", "float | None", 3, 3.0),
        ("int | None", "float | None", None, None),
        ("list[int]", "list[float]", [1, 2], [1.0, 2.0]),
        ("tuple[int, ...]", "tuple[float, ...]", (1, 2), (1.0, 2.0)),
        ("tuple[str, int]", "tuple[str, float]", ("a", 2), ("a", 2.0)),
        ("dict[str, list[int]]", "dict[str, list[float]]", {"a": [1]}, {"a": [1.0]}),
        ("set[int]", "set[float]", {1}, {1.0}),
        ("list[int] | None", "list[float] | None", [1], [1.0]),
        ("list[int] | list[str]", "list[float] | list[str]", ["x"], ["x"]),
        ("list[int] | None", "list[float] | None", None, None),
    ],
)
def test_values_are_widened(old: str, new: str, value: Any, expected: Any) -> None:
    change = annotation_change(old, new)
    assert change.convert is not None
    assert repr(change.convert(value)) == repr(expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("str", "int"),
        ("float", "int"),
        ("int", "bool"),
        ("int | None", "int"),
        ("int", "Decimal"),
        ("list[int]", "list[str]"),
        ("list[int]", "set[int]"),
        ("list[int] | list[bool]", "list[float]"),
        ("dict[int, str]", "dict[float, str]"),
        ("tuple[int]", "tuple[int, int]"),
        ("Status", "str"),
        ("not an annotation", "int"),
    ],
)
def test_there_is_no_safe_way(old: str, new: str) -> None:
    assert not annotation_change(old, new).possible


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, "int"),
        ("int", "int"),
        (None, "None"),
        (Optional[int], "int | None"),  # noqa: UP045
        (int | str, "int | str"),
        (typing.List[int], "list[int]"),  # noqa: UP006
        (dict[str, list[int]], "dict[str, list[int]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Annotated[int, "cents"], "int"),
        (Literal["a", 1], "Literal['a', 1]"),
        (T, "Any"),
        (Any, "Any"),
        (typing.ForwardRef("Payment"), "Payment"),
    ],
)
def test_annotations_as_text(annotation: Any, expected: str) -> None:
    assert annotation_text(annotation) == expected
