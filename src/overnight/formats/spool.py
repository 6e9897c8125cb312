"""The spool: what an engine wrote down while no driver listened.

A file of the link's own KEPT and PE_ENDED frames behind the magic, and a CLOSED when the
engine that joined by itself has left: nothing of it runs any more. The engine appends
whole frames and waits for the disk after each, so a torn one can only be the last, and
says nothing that the engine believed to be safe.
"""

from __future__ import annotations

from struct import Struct

from overnight.errors import LinkBroken
from overnight.formats.rows import decode_kept, decode_per_engine_reports
from overnight.model.messages import CLOSED, KEPT, LINK_VERSION, MAGIC, PE_ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.model.attempt import Attempt
    from overnight.model.report import Report

_HEADER = Struct(">IBB")


class Spooled:
    """What a spool holds, in order.

    Attributes:
        kept: Reports with their attempts.
        commands: Reports of per-engine commands; True for START.
        has_closed: Its engine has left in order.
        torn_bytes: What the last write left behind that is no whole frame.
    """

    def __init__(self) -> None:
        self.kept: list[tuple[Attempt, Report]] = []
        self.commands: list[tuple[bool, Report]] = []
        self.has_closed = False
        self.torn_bytes = 0


def parse_spool(data: bytes) -> Spooled:
    """Read the contents of a spool, cut off wherever it may be.

    Raises:
        LinkBroken: This is no spool of ours.
    """
    spooled = Spooled()
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):
            spooled.torn_bytes = len(data)
            return spooled
        raise LinkBroken("a spool does not begin as one")
    at = len(MAGIC)
    while at + _HEADER.size <= len(data):
        size, kind, version = _HEADER.unpack_from(data, at)
        end = at + _HEADER.size + size
        if version != LINK_VERSION or kind not in (KEPT, PE_ENDED, CLOSED):
            raise LinkBroken(f"a spool holds a frame of kind {kind}, version {version}")
        if end > len(data):
            break
        _add(spooled, kind, data[at + _HEADER.size:end])
        at = end
    spooled.torn_bytes = len(data) - at
    return spooled


def _add(spooled: Spooled, kind: int, payload: bytes) -> None:
    if kind == KEPT:
        spooled.kept += decode_kept(payload)[1]
    elif kind == CLOSED:
        spooled.has_closed = True
    else:
        spooled.commands += decode_per_engine_reports(payload)[1]
