"""Bytes of sections, and errors that name the culprit."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwater.common.errors import SerializationError, StateError
from headwater.state import payload


@dataclass
class Enricher:
    name: str = "geo"
    client: Any = field(default_factory=threading.Lock)


def test_round_trip() -> None:
    entries = ([1, "a", ("b", 2)], [None, [1, {"x": {1}}], b"c"], [])
    data = payload.encode(("value", False, False), entries, "uid", "state")
    assert payload.decode(data, "uid", "state") == (("value", False, False), entries)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Enricher(), "attribute 'client' of Enricher is a lock"),
        ({"a": 1, "b": [0, threading.Lock()]}, r"\['b'\]\[1\] is a lock"),
        (threading.Lock(), "the value is a lock"),
        ((i for i in ()), "the value is a generator"),
    ],
    ids=["attribute", "nested", "itself", "generator"],
)
def test_what_cannot_be_pickled_is_named(value: Any, expected: str) -> None:
    with pytest.raises(SerializationError, match=f"state 'cache' of operator 'enrich'.*{expected}"):
        payload.encode(("value",), (["k1", "k2"], ["fine", value], []), "enrich", "cache")


_WRITER = """
import sys
from dataclasses import dataclass
from headwater.state import payload

def make():
    @dataclass
    class Local:
        x: int
    return Local

sys.stdout.buffer.write(payload.encode(("value",), ([1], [make()(5)], []), "u", "s"))
"""


def test_classes_that_no_module_has_are_stored_by_value() -> None:
    written = subprocess.run(
        [sys.executable, "-c", _WRITER],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    ).stdout
    _, (_, values, _) = payload.decode(written, "u", "s")
    assert values[0].x == 5


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(SerializationError, match="state 's' of operator 'u' cannot be read"):
        payload.decode(b"nonsense", "u", "s")


@pytest.mark.parametrize("content", [(2, (), ()), (), [], "x"], ids=repr)
def test_another_format_is_refused(content: Any) -> None:
    with pytest.raises(StateError, match="written by another version"):
        payload.decode(pickle.dumps(content), "u", "s")
