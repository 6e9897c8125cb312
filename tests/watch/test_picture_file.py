"""Where a picture may be written: to a new name, or over an earlier picture of its kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from overnight.errors import OvernightError
from overnight.watch.picture_file import (
    BEGINNINGS,
    HTML,
    MADE_BY,
    PNG,
    SVG,
    check_picture_file,
    write_picture,
)

if TYPE_CHECKING:
    from pathlib import Path

KINDS = (SVG, HTML, PNG)


def picture(kind: str) -> bytes:
    return BEGINNINGS[kind] + b" " + MADE_BY.encode() + b"\nand so on\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_takes_a_new_name_and_the_place_of_an_earlier_one(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "run"
    for data in (picture(kind) * 3, picture(kind)):
        check_picture_file(str(path), kind)
        write_picture(str(path), kind, data)
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    "lies_there",
    [b"", b"echo a\n", b"    \t0\t1\t-1\tn1\t7\t0\t1.0\t1.0\t2.0\t0\t''\t0\t''\ttrue\n",
     b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"<!DOCTYPE html>\n<p>of mine",
     b"\x89PNG\r\n\x1a\n of mine", *(picture(kind) for kind in KINDS)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_is_ever_replaced(tmp_path: Path, lies_there: bytes, kind: str) -> None:
    if lies_there == picture(kind):
        return  # the one that may be
    path = tmp_path / "kept"
    path.write_bytes(lies_there)
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, link):
        for attempt in (check_picture_file, lambda path, kind: write_picture(path, kind, b"new")):
            with pytest.raises(OvernightError) as refusal:
                attempt(str(name), kind)
            error = refusal.value
            assert error.what == (
                f"this file is no {kind} of an earlier report, and is not overwritten"
            )
            assert (error.where, error.do) == (str(name), "give the picture a new name")
            assert error.kept == "it is untouched, and no picture was written"
    assert path.read_bytes() == lies_there


def test_a_device_keeps_nothing_and_a_link_to_nothing_is_a_new_name(tmp_path: Path) -> None:
    check_picture_file(os.devnull, SVG)
    write_picture(os.devnull, SVG, picture(SVG))
    link = tmp_path / "link"
    link.symlink_to("new.svg")
    check_picture_file(str(link), SVG)
    write_picture(str(link), SVG, picture(SVG))
    assert (tmp_path / "new.svg").read_bytes() == picture(SVG)
