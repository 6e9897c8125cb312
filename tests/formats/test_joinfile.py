"""The join file: what is written is what is read, and nothing else is believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import LinkBroken
from overnight.formats.joinfile import JoinFile, join_file_text, parse_join_file

hosts = st.text(min_size=1, max_size=30)
ports = st.integers(0, 65535)


@given(
    run=st.text(), generation=st.integers(1), addresses=st.lists(st.tuples(hosts, ports)),
    port=ports, boot=st.text(), cwd=st.text(), secret=st.binary(min_size=32, max_size=32),
)
def test_what_is_written_is_read(run, generation, addresses, port, boot, cwd, secret):
    written = JoinFile(run, generation, addresses, port, boot, cwd, "PEM", secret, secret[::-1])
    read = parse_join_file(join_file_text(written))
    for name in JoinFile.__slots__:
        assert getattr(read, name) == getattr(written, name)


def test_loopback_is_tried_on_the_drivers_machine_alone_and_first():
    file = JoinFile("P", 1, [("10.0.0.1", 5), ("head", 5)], 5, "boot", "/", "", bytes(32),
                    bytes(32))
    assert file.places("boot") == [("127.0.0.1", 5), ("10.0.0.1", 5), ("head", 5)]
    assert file.places("another") == [("10.0.0.1", 5), ("head", 5)]
    file.boot = ""
    assert file.places("") == [("10.0.0.1", 5), ("head", 5)]


GOOD = json.loads(join_file_text(JoinFile("P", 1, [("h", 5)], 5, "b", "/", "", bytes(32),
                                          bytes(32))))


@pytest.mark.parametrize("change", [
    {"overnight join file": 2}, {"secret": "00"}, {"secret": "zz" * 32}, {"addresses": [["h"]]},
    {"addresses": [["h", 70000]]}, {"addresses": [["h", "5"]]}, {"loopback_port": None},
    {"generation": "x"}, {"watching": 5},
])  # fmt: skip
def test_a_file_that_says_something_else_is_refused(change):
    with pytest.raises(LinkBroken):
        parse_join_file(json.dumps({**GOOD, **change}))


@given(st.text(max_size=200))
def test_any_other_text_is_refused(text):
    with pytest.raises(LinkBroken):
        parse_join_file(text)


@pytest.mark.parametrize("cut", range(0, 300, 7))
def test_a_file_that_was_cut_is_refused(cut):
    with pytest.raises(LinkBroken):
        parse_join_file(json.dumps(GOOD)[:cut])
