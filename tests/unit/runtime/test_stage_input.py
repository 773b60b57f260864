"""The reading end: frames of an epoch, in event-time order."""

from __future__ import annotations

from typing import Any

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.runtime.epoch.chunk import FrameKind, Header, decode_records, encode_frame, encode_records
from headwater.runtime.stage.edge_ids import consumer_of, edge_id
from headwater.runtime.stage.input import Spool, StageInput

HEAD = 5
EDGE = edge_id(HEAD, 0)


def data(channel: str, seq: int, watermark: int, *values: Any, edge: int = EDGE, stage: int = 1) -> bytes:
    header = Header(FrameKind.DATA, stage, 0, edge, channel, seq, watermark, len(values))
    return encode_frame(header, encode_records(list(values), None))


def end(channel: str, watermark: int, *, idle: bool = False, ended: bool = False, edge: int = EDGE) -> bytes:
    return encode_frame(Header(FrameKind.END, 1, 0, edge, channel, 99, watermark, idle=idle, ended=ended))


def steps(frames: list[bytes], floors: dict[int, int] | None = None) -> list[Any]:
    """("watermark", w), ("idle", b) or the values of a chunk, in order."""
    collected = StageInput(1)
    for frame in frames:
        collected.add(frame)
    found: list[Any] = []
    for step in collected.steps(floors or {}):
        if step.kind == "chunk":
            found.append(decode_records(step.value)[0])
        else:
            assert step.node in (HEAD, HEAD + 1)
            found.append((step.kind, step.value))
    return found


def test_edge_ids() -> None:
    assert consumer_of(edge_id(12, 3)) == 12
    assert len({edge_id(node, position) for node in range(5) for position in range(5)}) == 25


def test_chunks_of_one_channel_come_in_the_order_they_were_sent_however_they_arrive() -> None:
    frames = [end("a", 30), data("a", 1, 10, "second"), data("a", 0, MIN_WATERMARK, "first"), data("a", 2, 20, "third")]
    assert steps(frames) == [
        ["first"],
        ("watermark", 10),
        ["second"],
        ("watermark", 20),
        ["third"],
        ("watermark", 30),
        ("watermark", 30),
        ("idle", False),
    ]


def test_two_channels_are_merged_by_watermark_and_event_time_is_the_slower_one() -> None:
    frames = [
        data("a", 0, 0, "a0"),
        data("a", 1, 100, "a100"),
        end("a", 200),
        data("b", 0, 50, "b50"),
        data("b", 1, 150, "b150"),
        end("b", 160),
    ]
    in_order = [step for step in steps(frames) if isinstance(step, list)]
    assert in_order == [["a0"], ["b50"], ["a100"], ["b150"]]
    watermarks = [step[1] for step in steps(frames) if step[0] == "watermark"]
    assert watermarks == sorted(watermarks) and watermarks[-1] == 160


def test_the_watermark_before_a_chunk_never_passes_what_another_channel_still_brings() -> None:
    frames = [data("a", 0, 100, "a"), end("a", 100), data("b", 0, 10, "b"), end("b", 10)]
    reached = MIN_WATERMARK
    for step in steps(frames):
        if step == ["b"]:
            assert reached <= 10
        elif isinstance(step, tuple) and step[0] == "watermark":
            reached = step[1]
    assert reached == 10


def test_the_floor_holds() -> None:
    frames = [data("a", 0, 5, "old"), end("a", 7)]
    assert steps(frames, {HEAD: 50}) == [["old"], ("idle", False)]


def test_idle_and_ended_channels_do_not_hold_back() -> None:
    assert ("watermark", 90) in steps([end("a", 10, idle=True), end("b", 90)])
    assert ("watermark", 90) in steps([end("a", 10, ended=True), end("b", 90)])
    assert steps([end("a", 10, idle=True), end("b", 20, idle=True)])[-1] == ("idle", True)


def test_the_end_of_all_input() -> None:
    frames = [end("a", MAX_WATERMARK, ended=True), end("b", MAX_WATERMARK, ended=True)]
    assert ("watermark", MAX_WATERMARK) in steps(frames)


def test_several_inputs_of_one_operator_are_channels_of_one_head() -> None:
    other = edge_id(HEAD, 1)
    frames = [data("a", 0, 10, "left"), end("a", 50), data("a", 0, 5, "right", edge=other), end("a", 20, edge=other)]
    found = steps(frames)
    assert [step for step in found if isinstance(step, list)] == [["right"], ["left"]]
    assert [step[1] for step in found if step[0] == "watermark"][-1] == 20


def test_of_two_heads_the_one_that_is_behind_goes_first() -> None:
    far = edge_id(HEAD + 1, 0)
    frames = [
        data("a", 0, 100, "late"),
        data("a", 1, 200, "later"),
        end("a", 300),
        data("a", 0, 10, "early", edge=far),
        data("a", 1, 150, "middle", edge=far),
        end("a", 160, edge=far),
    ]
    in_order = [step[0] for step in steps(frames) if isinstance(step, list)]
    assert in_order.index("early") < in_order.index("late") < in_order.index("later")
    assert in_order.index("middle") < in_order.index("later")
    assert sorted(in_order) == ["early", "late", "later", "middle"]


def test_frames_for_further_stages_and_errors_are_set_aside() -> None:
    collected = StageInput(1)
    collected.add(data("a", 0, 0, "mine"))
    collected.add(data("a", 0, 0, "not mine", stage=3))
    collected.add(encode_frame(Header(FrameKind.ERROR, 1 << 20, 0, 0, "", 0, 0), b"reason"))
    assert len(collected.passing) == 1 and collected.passing[0][0].stage == 3
    assert len(collected.errors) == 1
    assert [step.kind for step in collected.steps({})].count("chunk") == 1


def test_the_spool_goes_to_a_file_beyond_its_limit() -> None:
    spool = Spool(limit=10)
    stored = [spool.put(memoryview(bytes([n]) * 6)) for n in range(5)]
    assert isinstance(stored[0], memoryview) and isinstance(stored[1], tuple)
    for n in (3, 0, 4, 1, 2):
        assert bytes(spool.get(stored[n])) == bytes([n]) * 6
    late = spool.put(memoryview(b"after reading"))
    assert bytes(spool.get(late)) == b"after reading"
    spool.close()
