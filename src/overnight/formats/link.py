"""The bytes of a link: frames, what stands before the first one, and control payloads.

A frame is ``>IBB`` - length of the payload, kind, link version - and the payload. Rows
of attempts and reports are made in ``rows``; here are the small mappings of the rare
frames. They have a codec of their own because importing json costs an engine more
than starting its first task; it reads hostile bytes without harm, never pickles.

Everything a link carries can be imported from here.
"""

from __future__ import annotations

from struct import Struct, error

from overnight.errors import LinkBroken
from overnight.formats.rows import (
    decode_attempts,
    decode_commands,
    decode_ids,
    decode_kept,
    decode_number,
    decode_per_engine_reports,
    decode_reports,
    encode_attempts,
    encode_commands,
    encode_ids,
    encode_kept,
    encode_number,
    encode_per_engine_reports,
    encode_reports,
    numbered,
    reports_and_rows,
)
from overnight.model.messages import LINK_VERSION, MAGIC, Setup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = [
    "HEADER_SIZE", "MAX_FRAME", "FrameReader", "MagicFinder", "decode_attempts",
    "decode_commands", "decode_control", "decode_ids", "decode_kept", "decode_number",
    "decode_per_engine_reports", "decode_reports", "encode_attempts", "encode_commands",
    "encode_control", "encode_ids", "encode_kept", "encode_number",
    "encode_per_engine_reports", "encode_reports", "frame", "frame_header", "numbered",
    "reports_and_rows", "setup_from_mapping", "setup_to_mapping",
]

MAX_FRAME = 64 * 1024 * 1024
"""Bytes of the longest payload that is read; a command may be long, a frame not endless."""

MAX_NOISE = 64 * 1024
"""Bytes that login files may print before the magic."""

MAX_DEPTH = 16
"""Containers within containers in a control payload."""

_HEADER = Struct(">IBB")
HEADER_SIZE = _HEADER.size


def frame_header(kind: int, size: int) -> bytes:
    """What stands before a payload of ``size`` bytes."""
    return _HEADER.pack(size, kind, LINK_VERSION)


def frame(kind: int, payload: bytes) -> bytes:
    """One whole frame."""
    return _HEADER.pack(len(payload), kind, LINK_VERSION) + payload


class FrameReader:
    """Cuts a stream into frames, whatever pieces it comes in.

    After ``LinkBroken`` the stream has no more meaning; the reader is not used again.
    """

    __slots__ = ("_max_frame", "_rest")

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._rest = bytearray()
        self._max_frame = max_frame

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Frames (kind, payload) that are whole now, in order; what is left waits.

        Raises:
            LinkBroken: A frame of another version, or longer than ``max_frame``.
        """
        rest = self._rest
        rest += data
        frames: list[tuple[int, bytes]] = []
        start, end = 0, len(rest)
        while end - start >= HEADER_SIZE:
            size, kind, version = _HEADER.unpack_from(rest, start)
            self._check(size, version)
            after = start + HEADER_SIZE + size
            if after > end:
                break
            frames.append((kind, bytes(rest[start + HEADER_SIZE:after])))
            start = after
        if start:
            del rest[:start]
        return frames

    def missing(self) -> int:
        """Bytes that the frame at hand still wants; its header is here."""
        size, _, _ = _HEADER.unpack_from(self._rest)
        return int(HEADER_SIZE + size - len(self._rest))

    def _check(self, size: int, version: int) -> None:
        if version != LINK_VERSION:
            raise LinkBroken(
                f"the other side speaks link version {version}, this one {LINK_VERSION}"
            )
        if size > self._max_frame:
            raise LinkBroken(f"a frame of {size} bytes; the longest is {self._max_frame}")


class MagicFinder:
    """Passes over what a login prints until the magic comes.

    Attributes:
        noise: What came before the magic, as far as it is known to be noise.
    """

    __slots__ = ("_seen", "noise")

    def __init__(self) -> None:
        self._seen = bytearray()
        self.noise = b""

    def feed(self, data: bytes) -> bytes | None:
        """What follows the magic, once it was there; None until then.

        Raises:
            LinkBroken: No magic in the first 64 KiB.
        """
        self._seen += data
        at = self._seen.find(MAGIC)
        if at < 0:
            self.noise = bytes(self._seen)
        else:
            self.noise = bytes(self._seen[:at])
        if len(self.noise) > MAX_NOISE + (len(MAGIC) if at < 0 else 0):
            raise LinkBroken(f"{len(self.noise)} bytes came and no magic among them")
        return None if at < 0 else bytes(self._seen[at + len(MAGIC):])


# Control payloads. One byte says the type; containers say how many follow.

_FLOAT = Struct(">d")
_COUNT = Struct(">I")


def encode_control(mapping: Mapping[str, object]) -> bytes:
    """The bytes of a mapping of None, bool, int, float, bytes, str, list and dict.

    Raises:
        TypeError: Another type, a key that is no text, or more than ``MAX_DEPTH`` levels.
    """
    parts: list[bytes] = []
    _put(mapping, parts, 0)
    return b"".join(parts)


def _put(value: object, parts: list[bytes], depth: int) -> None:
    if value is None or value is True or value is False:
        parts.append(b"N" if value is None else b"T" if value else b"F")
    elif isinstance(value, int):
        digits = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        _put_sized(b"i", digits, parts)
    elif isinstance(value, float):
        parts.append(b"f" + _FLOAT.pack(value))
    elif isinstance(value, str):
        _put_sized(b"s", value.encode("utf-8", "surrogatepass"), parts)
    elif isinstance(value, bytes):
        _put_sized(b"b", value, parts)
    else:
        _put_container(value, parts, depth + 1)


def _put_sized(tag: bytes, data: bytes, parts: list[bytes]) -> None:
    parts.append(tag + _COUNT.pack(len(data)))
    parts.append(data)


def _put_container(value: object, parts: list[bytes], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise TypeError(f"control values may be nested {MAX_DEPTH} deep")
    if isinstance(value, (list, tuple)):
        parts.append(b"l" + _COUNT.pack(len(value)))
        for item in value:
            _put(item, parts, depth)
    elif isinstance(value, dict):
        parts.append(b"d" + _COUNT.pack(len(value)))
        for key, item in value.items():
            _put_sized(b"", key.encode("utf-8", "surrogatepass"), parts)
            _put(item, parts, depth)
    else:
        raise TypeError(f"a control value cannot be a {type(value).__name__}")


def decode_control(payload: bytes) -> dict[str, Any]:
    """The mapping that ``encode_control`` was given; tuples come back as lists.

    Raises:
        LinkBroken: These bytes are no such mapping.
    """
    reader = _ControlReader(payload)
    try:
        value = reader.value(0)
    except (error, UnicodeDecodeError) as cause:
        raise LinkBroken(f"a control frame cannot be read: {cause}") from cause
    if not isinstance(value, dict) or reader.at != len(payload):
        raise LinkBroken("a control frame does not hold one mapping")
    return value


class _ControlReader:
    """A place in a payload, moving on."""

    __slots__ = ("at", "payload")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.at = 0

    def value(self, depth: int) -> Any:
        tag = self.payload[self.at:self.at + 1]
        self.at += 1
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag == b"i":
            return int.from_bytes(self.sized(), "big", signed=True)
        if tag == b"f":
            self.at += _FLOAT.size
            return _FLOAT.unpack_from(self.payload, self.at - _FLOAT.size)[0]
        if tag == b"s":
            return self.text()
        if tag == b"b":
            return self.sized()
        return self.container(tag, depth + 1)

    def container(self, tag: bytes, depth: int) -> Any:
        if tag not in (b"l", b"d") or depth > MAX_DEPTH:
            raise LinkBroken(f"a control frame holds {tag!r} at depth {depth}")
        count = self.count()  # not trusted: every item is read, so a false one ends the payload
        if tag == b"l":
            return [self.value(depth) for _ in range(count)]
        return {self.text(): self.value(depth) for _ in range(count)}

    def count(self) -> int:
        self.at += _COUNT.size
        return int(_COUNT.unpack_from(self.payload, self.at - _COUNT.size)[0])

    def sized(self) -> bytes:
        size = self.count()
        data = self.payload[self.at:self.at + size]
        if len(data) != size:
            raise LinkBroken("a control frame ends in the middle of a value")
        self.at += size
        return data

    def text(self) -> str:
        return self.sized().decode("utf-8", "surrogatepass")


_CONSTANTS: dict[bytes, bool | None] = {b"N": None, b"T": True, b"F": False}


def setup_to_mapping(setup: Setup) -> dict[str, object]:
    """What a SETUP frame holds: each attribute by its name."""
    return {name: getattr(setup, name) for name in Setup.__slots__}


def setup_from_mapping(mapping: Mapping[str, Any]) -> Setup:
    """The setup in a SETUP frame; names that this version does not know are passed over.

    Raises:
        LinkBroken: A name is missing.
    """
    try:
        return Setup(**{name: mapping[name] for name in Setup.__slots__})
    except KeyError as cause:
        raise LinkBroken(f"a setup without {cause}") from cause
