"""What a new driver reads of an engine that was alone, cut off wherever it may be."""

from __future__ import annotations

import pytest

from overnight.errors import LinkBroken
from overnight.formats.link import encode_kept, encode_per_engine_reports, frame
from overnight.formats.spool import parse_spool
from overnight.model.attempt import Attempt
from overnight.model.messages import ASSIGN, KEPT, MAGIC, PE_ENDED
from overnight.model.outcome import Exited
from overnight.model.report import Report
from overnight.model.task import Task

ATTEMPT = Attempt(Task(3, 4, -1, b"true"), 2)
REPORT = Report(3, 2, Exited(0), 99, 1.0, 2.0)
FRAMES = [
    frame(KEPT, encode_kept(1, [(ATTEMPT, REPORT)])),
    frame(PE_ENDED, encode_per_engine_reports(2, [(False, REPORT)])),
    frame(KEPT, encode_kept(3, [(ATTEMPT, REPORT), (ATTEMPT, REPORT)])),
]


def test_a_spool_cut_at_any_byte_gives_the_frames_that_are_whole() -> None:
    data = MAGIC + b"".join(FRAMES)
    ends = [len(MAGIC) + sum(map(len, FRAMES[:count])) for count in range(4)]
    for cut in range(len(data) + 1):
        spooled = parse_spool(data[:cut])
        whole = sum(end <= cut for end in ends[1:])
        assert len(spooled.kept) == (0, 1, 1, 3)[whole]
        assert len(spooled.commands) == (0, 0, 1, 1)[whole]
        assert spooled.torn_bytes == (cut - ends[whole] if cut >= ends[0] else cut)


def test_what_is_no_spool_is_refused() -> None:
    with pytest.raises(LinkBroken, match="does not begin"):
        parse_spool(b"#!/bin/bash\necho a long enough text\n")


def test_a_frame_that_no_engine_spools_is_refused() -> None:
    with pytest.raises(LinkBroken, match=f"kind {ASSIGN}"):
        parse_spool(MAGIC + frame(ASSIGN, b""))
