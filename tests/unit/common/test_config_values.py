from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headwater.common.config.values import (
    choice_reader,
    read_boolean,
    read_duration_ms,
    read_float,
    read_integer,
    read_list,
    read_master,
    read_memory_bytes,
    read_text,
)
from headwater.common.time import Duration


@pytest.mark.parametrize(
    ("raw", "millis"),
    [
        ("10 s", 10_000),
        ("500ms", 500),
        ("1.5 min", 90_000),
        ("2 hours", 7_200_000),
        ("1 d", 86_400_000),
        ("250", 250),
        ("3 SECONDS", 3_000),
        ("2000 us", 2),
        ("1999999 ns", 1),
        (7, 7),
        (timedelta(seconds=1), 1_000),
        (Duration.of_minutes(1), 60_000),
    ],
)
def test_durations(raw: Any, millis: int) -> None:
    assert read_duration_ms(raw) == millis


@pytest.mark.parametrize("raw", ["", "s", "-1 s", "1 fortnight", "1 s 2 ms", 1.5, True, -1, None])
def test_what_is_no_duration(raw: Any) -> None:
    with pytest.raises(ValueError, match="a duration such as"):
        read_duration_ms(raw)


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        ("512m", 512 * 2**20),
        ("2 gb", 2 * 2**30),
        ("1 GiB", 2**30),
        ("1kb", 1024),
        ("1.5g", 3 * 2**29),
        ("7", 7),
        ("7 bytes", 7),
        ("1 tb", 2**40),
        (9, 9),
    ],
)
def test_memory_sizes(raw: Any, size: int) -> None:
    assert read_memory_bytes(raw) == size


@pytest.mark.parametrize("raw", ["", "g", "1 x", -1, True, None])
def test_what_is_no_memory_size(raw: Any) -> None:
    with pytest.raises(ValueError, match="a memory size"):
        read_memory_bytes(raw)


def test_numbers_and_booleans() -> None:
    assert read_integer(" 1_000 ") == 1000
    assert read_float("1e3") == 1000.0
    assert read_boolean("TRUE") is True
    assert read_boolean(False) is False
    for read, raw in (
        (read_integer, "1.5"),
        (read_integer, True),
        (read_float, "x"),
        (read_boolean, "yes"),
        (read_text, 1),
    ):
        with pytest.raises(ValueError):
            read(raw)  # type: ignore[operator]


def test_lists() -> None:
    assert read_list("a; b,c;") == ["a", "b", "c"]
    assert read_list(["a"]) == ["a"]
    with pytest.raises(ValueError):
        read_list([1])


def test_choices_do_not_mind_case_and_dashes() -> None:
    read = choice_reader("fixed-delay", "none", synonyms={"off": "none"})
    assert [read(text) for text in ("FIXED_DELAY", "fixeddelay", "off")] == ["fixed-delay", "fixed-delay", "none"]
    with pytest.raises(ValueError, match="one of fixed-delay, none"):
        read("sometimes")


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[4]",
        "local[*,3]",
        "local-cluster[2,1,1024]",
        "spark://a:7077,b:7077",
        "yarn",
        "k8s://https://host:443",
    ],
)
def test_masters(master: str) -> None:
    assert read_master(f" {master} ") == master


@pytest.mark.parametrize("raw", ["", "locl[*]", "local[0]", "local[2", "local-cluster[2]", "spark:host:7077", 2, None])
def test_what_is_no_master(raw: Any) -> None:
    with pytest.raises(ValueError, match="a Spark master such as"):
        read_master(raw)
