"""The order of chunks and the watermark of a stage within one epoch."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.time.merge import ChannelInput, merge


def channel(name: Any, watermarks: list[int], final: int, *, idle: bool = False, ended: bool = False) -> ChannelInput:
    """A channel whose chunks are named after it: a0, a1, ..."""
    chunks = [(watermark, seq, f"{name}{seq}") for seq, watermark in enumerate(watermarks)]
    return ChannelInput(name, chunks, final, idle, ended)


def steps(*channels: ChannelInput, floor: int = MIN_WATERMARK) -> list[Any]:
    """Chunks by name, watermarks as numbers; the end as it is."""
    return [value for _, value in merge(channels, floor)]


def test_one_channel_advances_between_its_chunks() -> None:
    assert steps(channel("a", [MIN_WATERMARK, 10, 20], 30)) == ["a0", 10, "a1", 20, "a2", 30, (30, False)]


def test_channels_far_apart_are_read_in_order_of_event_time() -> None:
    assert steps(channel("a", [0, 100, 200], 300), channel("b", [50, 150], 250)) == [
        0,
        "a0",
        50,
        "b0",
        100,
        "a1",
        150,
        "b1",
        200,
        "a2",
        250,
        (250, False),
    ]


def test_a_channel_without_chunks_holds_the_others_back() -> None:
    assert steps(channel("a", [100, 200], 300), channel("slow", [], 50)) == [50, "a0", "a1", (50, False)]


def test_a_channel_that_ran_out_of_chunks_holds_the_others_back_from_then_on() -> None:
    assert steps(channel("a", [10], 15), channel("b", [20, 30], 40)) == [10, "a0", 15, "b0", "b1", (15, False)]


def test_an_idle_channel_is_not_waited_for_once_its_chunks_are_read() -> None:
    assert steps(channel("a", [10], 15, idle=True), channel("b", [20], 40)) == [10, "a0", 20, "b0", 40, (40, False)]


def test_an_ended_channel_is_not_waited_for_either() -> None:
    assert steps(channel("a", [10], 15, ended=True), channel("b", [20], 40)) == [10, "a0", 20, "b0", 40, (40, False)]


def test_when_all_have_ended_the_highest_final_watermark_counts() -> None:
    ended = channel("a", [], 500, ended=True), channel("b", [], MAX_WATERMARK, ended=True)
    assert steps(*ended, floor=10) == [MAX_WATERMARK, (MAX_WATERMARK, False)]


def test_when_the_rest_is_idle_the_stage_is_idle_and_an_ended_channel_does_not_end_it() -> None:
    idle = channel("a", [], 100, idle=True), channel("b", [], 200, idle=True)
    ended = channel("c", [], MAX_WATERMARK, ended=True)
    assert steps(*idle, ended, floor=10) == [200, (200, True)]


def test_the_watermark_never_goes_below_the_floor() -> None:
    assert steps(channel("a", [10, 70], 80), floor=60) == ["a0", 70, "a1", 80, (80, False)]
    assert steps(channel("a", [10], 20), floor=60) == ["a0", (60, False)]


def test_without_channels_nothing_changes() -> None:
    assert steps(floor=60) == [(60, False)]


def test_without_event_time_channels_are_read_one_after_the_other() -> None:
    low = MIN_WATERMARK
    read = steps(channel("b", [low, low], low), channel("a", [low, low], low))
    assert read == ["a0", "a1", "b0", "b1", (low, False)]


def test_equal_watermarks_are_read_by_channel_then_seq() -> None:
    read = steps(channel("b", [5, 5], 9), channel("a", [5, 5], 9))
    assert read == [5, "a0", "a1", "b0", "b1", 9, (9, False)]


def test_chunks_may_come_in_any_order_and_channels_may_have_any_names() -> None:
    shuffled = ChannelInput("a", [(20, 1, "second"), (10, 0, "first")], 30, False, False)
    assert steps(shuffled) == [10, "first", 20, "second", 30, (30, False)]
    read = steps(channel("x", [5], 9), channel(10, [5], 9), channel(9, [5], 9))
    assert read == [5, "90", "100", "x0", 9, (9, False)]


def test_chunks_are_never_compared() -> None:
    chunks: list[tuple[int, int, Any]] = [(5, 0, {}), (5, 1, {})]
    merged = merge([ChannelInput("a", chunks, 9, False, False), ChannelInput("b", list(chunks), 9, False, False)], 0)
    assert [kind for kind, _ in merged].count("chunk") == 4


# -- properties -------------------------------------------------------------------------------------------------------

watermark_values = st.one_of(st.just(MIN_WATERMARK), st.integers(0, 60))


@st.composite
def channel_inputs(draw: st.DrawFn) -> list[ChannelInput]:
    found = []
    for name in range(draw(st.integers(0, 4))):
        rising = sorted(draw(st.lists(watermark_values, min_size=1, max_size=6)))
        *before, final = rising
        idle, ended = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
        found.append(channel(f"channel-{name}-", before, final, idle=idle, ended=ended))
    return found


@given(channel_inputs(), watermark_values)
def test_every_chunk_is_read_once_in_the_order_of_its_channel(channels: list[ChannelInput], floor: int) -> None:
    read = [value for kind, value in merge(channels, floor) if kind == "chunk"]
    assert sorted(read) == sorted(chunk for given in channels for _, _, chunk in given.chunks)
    for given_channel in channels:
        own = [chunk for _, _, chunk in given_channel.chunks]
        assert [chunk for chunk in read if chunk in own] == own


@given(channel_inputs(), watermark_values)
def test_the_watermark_only_grows_and_no_chunk_is_behind_what_its_channel_had_said(
    channels: list[ChannelInput], floor: int
) -> None:
    said = {chunk: watermark for given in channels for watermark, _, chunk in given.chunks}
    current = floor
    for kind, value in merge(channels, floor):
        if kind == "watermark":
            assert value > current
            current = value
        elif kind == "chunk":
            # Records of this chunk are later than said[value]: the stage must not be further, or they would be late.
            assert current <= max(said[value], floor)
        else:
            assert value[0] == current


@given(channel_inputs(), watermark_values)
def test_the_watermark_is_the_minimum_over_the_channels_at_every_step(channels: list[ChannelInput], floor: int) -> None:
    """Against the definition, computed anew for each step."""
    left = {given.channel: list(given.chunks) for given in channels}
    current = floor
    for kind, value in merge(channels, floor):
        if kind == "watermark":
            current = value
        elif kind == "chunk":
            minimum = min(
                left[given.channel][0][0] if left[given.channel] else given.final_watermark
                for given in channels
                if left[given.channel] or not (given.idle or given.ended)
            )
            assert current == max(floor, minimum)
            owner = next(name for name, chunks in left.items() if chunks and chunks[0][2] == value)
            ranks = [(chunks[0][0], name) for name, chunks in left.items() if chunks]
            assert (left[owner][0][0], owner) == min(ranks)
            left[owner].pop(0)
    assert not any(left.values())


@given(channel_inputs(), watermark_values, st.randoms())
def test_the_order_in_which_channels_are_given_does_not_matter(
    channels: list[ChannelInput], floor: int, random: Any
) -> None:
    mixed = list(channels)
    random.shuffle(mixed)
    assert list(merge(mixed, floor)) == list(merge(channels, floor))
