"""Frames, magic and control payloads: whole, in pieces, cut and hostile."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import LinkBroken
from overnight.formats import link
from overnight.model.messages import LINK_VERSION, MAGIC, Setup

FRAMES = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=8)


def fed_in_pieces(data: bytes, cuts: list[int]) -> list[tuple[int, bytes]]:
    reader = link.FrameReader()
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    frames, start = [], 0
    for end in ends:
        frames += reader.feed(data[start:end])
        start = end
    return frames


@given(FRAMES, st.lists(st.integers(0, 5000), max_size=12))
def test_frames_come_out_as_they_went_in_whatever_pieces_they_come_in(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(link.frame(kind, payload) for kind, payload in frames)
    assert fed_in_pieces(data, cuts) == frames


def test_a_frame_cut_anywhere_waits_for_its_rest() -> None:
    data = link.frame(5, b"payload")
    for cut in range(len(data)):
        assert link.FrameReader().feed(data[:cut]) == []


def test_a_frame_of_another_version_breaks_the_link() -> None:
    data = bytearray(link.frame(1, b""))
    data[5] = LINK_VERSION + 1
    with pytest.raises(LinkBroken, match=f"version {LINK_VERSION + 1}"):
        link.FrameReader().feed(bytes(data))


def test_a_frame_longer_than_allowed_breaks_the_link_before_it_is_read() -> None:
    header = link.frame_header(1, 1001)
    with pytest.raises(LinkBroken, match="1001 bytes"):
        link.FrameReader(max_frame=1000).feed(header)


@given(st.binary(max_size=400), st.binary(max_size=40), st.integers(1, 40))
def test_what_precedes_the_magic_is_passed_over(noise: bytes, rest: bytes, step: int) -> None:
    noise = noise.replace(MAGIC, b"")
    data = noise + MAGIC + rest
    finder = link.MagicFinder()
    for start in range(0, len(data), step):
        found = finder.feed(data[start:start + step])
        if found is not None:
            assert found == data[len(noise) + len(MAGIC):start + step]
            assert finder.noise == noise
            return
    pytest.fail("the magic was not found")


def test_too_much_noise_breaks_the_link() -> None:
    finder = link.MagicFinder()
    for _ in range(64):
        assert finder.feed(b"x" * 1024) is None
    with pytest.raises(LinkBroken, match="no magic"):
        finder.feed(b"x" * 1024)


def test_noise_of_exactly_the_limit_is_passed_over() -> None:
    assert link.MagicFinder().feed(b"x" * link.MAX_NOISE + MAGIC + b"rest") == b"rest"


CONTROL = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(st.text(max_size=12), CONTROL, max_size=6)


@given(MAPPINGS)
def test_a_control_payload_says_what_was_put_in(mapping: dict[str, object]) -> None:
    assert link.decode_control(link.encode_control(mapping)) == mapping


def test_control_keeps_what_equality_does_not_tell_apart() -> None:
    values = {"one": 1, "true": True, "float": 1.0, "nan": math.nan, "odd": "\udcff"}
    back = link.decode_control(link.encode_control(values))
    assert [type(each) for each in back.values()] == [int, bool, float, float, str]
    assert math.isnan(back["nan"])
    assert back["odd"] == "\udcff"


@given(MAPPINGS)
def test_a_control_payload_cut_anywhere_breaks_the_link(mapping: dict[str, object]) -> None:
    data = link.encode_control(mapping)
    for cut in range(len(data)):
        with pytest.raises(LinkBroken):
            link.decode_control(data[:cut])


@given(st.binary(max_size=200))
def test_hostile_control_bytes_are_read_or_break_the_link(data: bytes) -> None:
    with contextlib.suppress(LinkBroken):
        assert isinstance(link.decode_control(data), dict)


def test_nesting_without_end_breaks_the_link_and_not_the_stack() -> None:
    data = b"d\0\0\0\1\0\0\0\1k" + b"l\0\0\0\1" * 100_000
    with pytest.raises(LinkBroken, match="depth"):
        link.decode_control(data)


def test_a_count_without_items_breaks_the_link_at_once() -> None:
    with pytest.raises(LinkBroken):
        link.decode_control(b"d\xff\xff\xff\xff")


def test_only_values_that_travel_are_taken() -> None:
    with pytest.raises(TypeError, match="set"):
        link.encode_control({"a": {1, 2}})


SETUP = Setup(
    "run", "Tasks", 3, 0, 4, 2, "/tmp/with \udcff", [b"A=1"], False, 5.0, True, None, 2.0,
    None, ["/a", "/b"], "/tmp/attach", 60.0, [[b"GPU=0"], [b"GPU=1"]],
)


def test_a_setup_travels_by_the_names_of_its_attributes() -> None:
    payload = link.encode_control(link.setup_to_mapping(SETUP))
    back = link.setup_from_mapping(link.decode_control(payload))
    assert link.setup_to_mapping(back) == link.setup_to_mapping(SETUP)


def test_a_setup_of_a_later_version_may_say_more() -> None:
    back = link.setup_from_mapping(link.setup_to_mapping(SETUP) | {"later": 1})
    assert back.run == "run"


def test_a_setup_that_says_too_little_breaks_the_link() -> None:
    mapping = link.setup_to_mapping(SETUP)
    del mapping["slots"]
    with pytest.raises(LinkBroken, match="slots"):
        link.setup_from_mapping(mapping)
