"""Frames: what goes in comes out, and headers can be read without payloads."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.runtime.epoch.chunk import (
    FrameKind,
    Header,
    decode_header,
    decode_records,
    encode_frame,
    encode_records,
    payload_of,
)

headers = st.builds(
    Header,
    kind=st.sampled_from([FrameKind.DATA, FrameKind.END, FrameKind.ACK, FrameKind.ERROR]),
    stage=st.integers(0, 1 << 20),
    target=st.integers(0, 40_000),
    edge=st.integers(0, 1 << 40),
    channel=st.text(max_size=30),
    seq=st.integers(0, 1 << 31),
    watermark=st.integers(-(2**63), 2**63 - 1),
    records=st.integers(0, 1 << 20),
    idle=st.booleans(),
    ended=st.booleans(),
)


@given(headers, st.binary(max_size=200))
def test_a_frame_gives_back_its_header_and_payload(header: Header, payload: bytes) -> None:
    frame = encode_frame(header, payload)
    assert decode_header(frame) == header
    assert bytes(payload_of(frame)) == payload


def test_the_header_is_read_without_the_payload() -> None:
    frame = encode_frame(Header(FrameKind.DATA, 1, 2, 3, "c", 4, 5), b"not a pickle")
    assert decode_header(frame).target == 2
    with pytest.raises(pickle.UnpicklingError):
        decode_records(payload_of(frame))


def test_the_payload_is_a_view_of_the_frame() -> None:
    frame = encode_frame(Header(FrameKind.DATA, 1, 2, 3, "c", 4, 5), b"x" * 1000)
    assert payload_of(frame).obj is frame


@given(st.lists(st.tuples(st.text(), st.integers())), st.booleans())
def test_records_come_back_with_their_timestamps(values: list[Any], stamped: bool) -> None:
    timestamps: list[int | None] | None = [None if i % 3 == 0 else i for i in range(len(values))] if stamped else None
    assert decode_records(encode_records(values, timestamps)) == (values, timestamps)
