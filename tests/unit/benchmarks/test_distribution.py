"""How latencies are spread: what is counted, drawn, and read back from the report."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.plot import Axis, Row, latency_plot, shown_ms
from benchmarks.latency.distribution import BINS_PER_DECADE, Histogram, bin_of, middle_ms

SVG = "{http://www.w3.org/2000/svg}"


@given(st.lists(st.floats(0.0, 1e6), max_size=50))
def test_every_value_is_counted_and_comes_back_from_text(values: list[float]) -> None:
    histogram = Histogram.of(values)
    assert sum(histogram.counts) == len(values)
    assert Histogram.decode(histogram.encode()) == histogram


@given(st.floats(0.011, 1e6))
def test_the_middle_of_a_bin_is_near_its_values(value: float) -> None:
    assert middle_ms(bin_of(value)) == pytest.approx(value, rel=0.04)


def test_the_curve_is_highest_where_most_values_are_and_its_area_is_one() -> None:
    histogram = Histogram.of([10.0] * 900 + [200.0] * 100)
    curve = histogram.curve()
    assert max(curve, key=lambda point: point[1])[0] == pytest.approx(10.0, rel=0.05)
    assert sum(height for _, height in curve) / BINS_PER_DECADE == pytest.approx(1.0)
    assert curve[0][1] < 0.001 * max(height for _, height in curve)
    assert curve[-1][1] < 0.001 * max(height for _, height in curve)


def test_nothing_has_no_curve() -> None:
    assert Histogram.of([]).curve() == []
    assert Histogram.decode(Histogram.of([]).encode()) == Histogram(0, ())


def row(name: str, values: list[float], median_ms: float, p99_ms: float) -> Row:
    return Row(name, "#123456", Histogram.of(values), median_ms, p99_ms)


def test_the_drawing_names_every_contender_and_marks_its_median() -> None:
    rows = [row("fast & small", [5.0, 6.0, 7.0], 6.0, 7.0), row("slow", [700.0, 800.0, 2000.0], 800.0, 2000.0)]
    drawing = ElementTree.fromstring(latency_plot("Latency", rows, (("median", 12.0),)))
    texts = [element.text for element in drawing.iter(f"{SVG}text")]
    assert "fast & small" in texts
    assert "median 6.0 ms, p99 7.0 ms" in texts
    assert "median 800 ms, p99 2.0 s" in texts
    assert "median ≤ 12 ms" in texts
    assert {"1 ms", "10 ms", "100 ms", "1 s"} <= set(texts)
    axis = Axis.around(rows, (("median", 12.0),))
    lines = {element.get("x1") for element in drawing.iter(f"{SVG}line")}
    assert {f"{axis.x(6.0):.1f}", f"{axis.x(800.0):.1f}"} <= lines


def test_the_axis_is_logarithmic_and_holds_everything() -> None:
    axis = Axis.around([row("only", [2.0, 60.0], 2.0, 60.0)], (("p99", 50.0),))
    assert (axis.low, axis.high) == (0, 2)
    assert axis.x(10.0) - axis.x(1.0) == pytest.approx(axis.x(100.0) - axis.x(10.0))
    assert axis.x(0.001) == axis.x(1.0)


def test_one_value_alone_can_be_drawn() -> None:
    ElementTree.fromstring(latency_plot("Latency", [row("one", [10.0], 10.0, 10.0)], ()))


@pytest.mark.parametrize(
    ("value_ms", "shown"), [(0.63, "0.6 ms"), (12.0, "12 ms"), (999.4, "999 ms"), (1234.0, "1.2 s"), (43_000.0, "43 s")]
)
def test_times_are_shown_with_few_digits(value_ms: float, shown: str) -> None:
    assert shown_ms(value_ms) == shown
