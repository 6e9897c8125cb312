"""Lists of lines, and reading a source to its end."""

from __future__ import annotations

from hypothesis import strategies as st

from overnight.formats.taskfile import Suspicion, TaskReader

BARRIER = b"#DISBATCH BARRIER\n"
SUSPICIOUS = b" #DISBATCH BARRIER\n"

LINES = [
    b"true", b"echo a b", b"", b"   ", b"# a comment", b"  leading", b"trailing  ", b"a\tb",
    b"caf\xe9", b"x" * 5000, b"one\rtwo", b"\rthree", b"four\r", b"five\r# six", b"\r\r",
    b"#DISBATCH PREFIX in ", b"#DISBATCH PREFIX ", b"#DISBATCH SUFFIX  > log",
    b"#DISBATCH BARRIER", b"#DISBATCH BARRIER CHECK", b"#DISBATCH BARRIER key",
    b"#DISBATCH REPEAT 3 r", b"#DISBATCH REPEAT 2 start 5 step 3 s", b"#DISBATCH REPEAT 0 z",
    b"#DISBATCH REPEAT 4 start 2 step 0 same", b"a\r#DISBATCH REPEAT 3 mid\rb",
    b"before\r#DISBATCH BARRIER\rbehind", b"#DISBATCH PREFIX p\rwrapped",
    b"#DISBATCH PERENGINE START mkdir d", b"#DISBATCH PERENGINE STOP rm -r d",
]  # fmt: skip
ODD_LINES = [
    b" #DISBATCH BARRIER", b"#disbatch repeat 2 x", b"#DISBATCHX", b"#DISBATCH NONSENSE",
    b"#DISBATCH REPEAT 2 step 2 start 5 odd", b"#DISBATCH BARRIER  CHECK",
    b"#DISBATCH PERENGINE start lower",
]  # fmt: skip


def lists(lines: list[bytes]) -> st.SearchStrategy[bytes]:
    """Whole lists of such lines: with and without a byte-order mark, CRLF and a last LF."""
    return st.builds(
        lambda mark, chosen, end, last: mark + b"".join(x + end for x in chosen[:-1])
        + chosen[-1] + last,
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
        st.lists(st.sampled_from(lines), min_size=1, max_size=25),
        st.sampled_from([b"\n", b"\r\n"]),
        st.sampled_from([b"", b"\n", b"\r\n"]),
    )


def items_of(data: bytes) -> list:
    """What the list means, read line by line; suspicions apart."""
    *lines, last = data.split(b"\n")
    reader = TaskReader()
    made = [one for line in [*lines, *([last] if last else [])] for one in reader.read_line(line)]
    return [one for one in made if not isinstance(one, Suspicion)]


def read_all(source, count: int = 100) -> list:
    """All items of a source that never makes one wait."""
    items: list = []
    while True:
        some, is_over = source.read(count)
        assert len(some) <= count
        assert some or is_over, "nothing came and nothing was said"
        items += some
        if is_over:
            return items
