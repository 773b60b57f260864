"""Java's regular expressions in Python and in RE2."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.table.functions.java_regex import compile_java, re2_with_group


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"(?<year>\d{4})", "in 2020", "2020"),
        (r"\p{Alpha}+", "12ab", "ab"),
        (r"[\p{Upper}_]+", "abC_D", "C_D"),
        (r"b\z", "ab\n", None),
        (r"b\Z", "ab\n", "b"),
        (r"a++b", "aab", "aab"),
        (r"\d+", "٣4", "4"),
        (r"(?<=a)b", "ab", "b"),
    ],
)
def test_javas_own_syntax(pattern: str, text: str, found: str | None) -> None:
    compiled = compile_java(pattern)
    assert compiled is not None
    match = compiled.search(text)
    assert (match and match.group()) == found


def test_a_malformed_pattern() -> None:
    assert compile_java("(") is None


@pytest.mark.parametrize(
    ("pattern", "group"),
    [("(a)|(b)", 2), ("(a)?b", 1), ("((a)b)", 2), ("a(?=b)", 0), ("a$", 0), ("a*+b", 0), ("[a&&b]", 0), ("(", 0)],
)
def test_re2_is_not_used_where_it_may_differ(pattern: str, group: int) -> None:
    assert re2_with_group(pattern, group) is None


def test_re2_is_used_for_usual_patterns() -> None:
    assert re2_with_group(r"(&|^)channel_id=([^&]*)", 2) == "(?:&|^)channel_id=(?P<g>[^&]*)"


def test_re2_agrees_with_python() -> None:
    choose = random.Random(7)
    parts = ["a", "b", "c", "(", ")", "|", "*", "+", "?", ".", "[ab]", "[^a]", r"\d", "^", "{1,2}", r"\."]
    tried = 0
    for _ in range(5000):
        pattern = "".join(choose.choice(parts) for _ in range(choose.randint(1, 8)))
        group = choose.randint(0, 2)
        plain = re2_with_group(pattern, group)
        if plain is None:
            continue
        texts = ["".join(choose.choice("abc1.\n") for _ in range(choose.randint(0, 6))) for _ in range(5)]
        compiled = compile_java(pattern)
        assert compiled is not None
        expected = [match and match.group(group) for match in map(compiled.search, texts)]
        assert pc.struct_field(pc.extract_regex(pa.array(texts), plain), "g").to_pylist() == expected, pattern
        tried += 1
    assert tried > 300
