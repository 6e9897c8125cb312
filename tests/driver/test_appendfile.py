"""What an append file promises: it grows in order, and nothing stands behind a torn row."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from overnight.driver import appendfile
from tests.driver.record_kit import file_size_limit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def test_a_new_file_is_not_made_where_something_lies(path):
    path.write_bytes(b"an earlier run's")
    with pytest.raises(FileExistsError):
        appendfile.create(str(path))
    assert path.read_bytes() == b"an earlier run's"


def test_what_was_appended_is_in_the_file_after_one_write(path):
    file = appendfile.create(str(path))
    file.append(b"one\n")
    file.append(b"two\n")
    assert path.read_bytes() == b""
    file.write()
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_continued_file_grows_at_its_end(path):
    path.write_bytes(b"one\n")
    file = appendfile.continue_file(str(path))
    file.append(b"two\n")
    file.write()
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"


def test_what_is_durable_is_not_kept(path):
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\n")
    file.write()
    file.became_durable(4)
    file.became_durable(2)
    assert (file.durable_end, file.undurable_size, file.end) == (4, 4, 8)
    file.close()


def test_what_a_failed_flush_lost_is_written_again_from_the_durable_end(path):
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\nthree\n")
    file.write()
    file.became_durable(4)
    os.truncate(path, 6)  # the pages behind were dropped
    file.reopen()
    file.write()
    file.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize(("left", "joint"), [(4, b""), (2, b"\n")], ids=["at a line", "within one"])
def test_a_file_that_lost_durable_rows_is_gone_on_with_at_its_end(path, left, joint):
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\n")
    file.write()
    file.became_durable(8)
    file.append(b"three\n")
    os.truncate(path, left)
    with pytest.raises(OSError, match="was cut"):
        file.write()
    file.reopen()
    file.write()
    assert path.read_bytes() == b"one\ntwo\n"[:left] + joint + b"three\n"
    assert file.lost_size == 8
    file.close()


def test_reopening_leaves_no_descriptor_behind(path):
    file = appendfile.create(str(path))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        file.reopen()
    os.unlink(path)
    file.reopen()
    os.unlink(path)
    os.mkdir(path)
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            file.reopen()
    assert len(os.listdir("/proc/self/fd")) == before
    file.close()


@pytest.mark.parametrize("size", [0, 2, 8])
def test_a_file_that_may_be_lost_goes_on_where_it_ends(path, size):
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\n")
    file.write()
    file.became_durable(8)
    file.append(b"three\n")
    os.truncate(path, size)
    file.reopen_or_begin()
    file.write()
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"[:size] + b"three\n"


def test_a_file_that_was_removed_is_begun_again(path):
    file = appendfile.create(str(path))
    file.append(b"one\n")
    file.write()
    file.became_durable(4)
    file.append(b"two\n")
    os.unlink(path)
    file.reopen_or_begin()
    file.write()
    file.close()
    assert path.read_bytes() == b"two\n"


@pytest.mark.needs("mounts")
def test_a_short_write_is_finished_at_its_own_offset(full_folder):
    path = full_folder.path / "rows"
    file = appendfile.create(str(path))
    row = b"x" * 4999 + b"\n"
    full_folder.fill(leave_kib=12)
    for _ in range(4):
        file.append(row)
    with pytest.raises(OSError, match="No space left"):
        file.write()
    taken = path.stat().st_size
    assert 0 < taken < 4 * len(row), "the write was not a short one"
    assert taken % len(row), "no row was torn"
    assert file.written_end == taken
    full_folder.relieve()
    file.append(b"last\n")
    file.write()
    file.close()
    assert path.read_bytes() == 4 * row + b"last\n"


@pytest.mark.needs("mounts")
def test_closing_on_a_full_disk_takes_a_torn_line_back(full_folder):
    path = full_folder.path / "rows"
    file = appendfile.create(str(path))
    row = b"x" * 4999 + b"\n"
    full_folder.fill(leave_kib=12)
    file.append(4 * row)
    with pytest.raises(OSError, match="No space left"):
        file.write()
    assert path.stat().st_size % len(row), "no row was torn"
    file.close()
    assert path.read_bytes() == 2 * row


def test_closing_takes_nothing_back_that_is_whole(path):
    path.write_bytes(b"an unfinished line")
    file = appendfile.continue_file(str(path))
    file.append(b"\none\ntwo")
    file.write()
    file.append(b"\nthree\n")
    file.close()
    assert path.read_bytes() == b"an unfinished line\none\n"
    file = appendfile.continue_file(str(path))
    file.append(b"two\n")
    file.close()
    assert path.read_bytes() == b"an unfinished line\none\n"


def test_closing_takes_nothing_back_behind_which_older_rows_stand(path):
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\nthree\n")
    file.write()
    file.reopen()  # their flush failed, and only a part is written anew
    with file_size_limit(6), pytest.raises(OSError, match="File too large"):
        file.write()
    file.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.needs("fuse")
def test_a_close_that_complains_is_no_fault(slow_folder):
    file = appendfile.create(str(slow_folder.path / "rows"))
    file.append(b"one\n")
    file.write()
    slow_folder.fail("EIO", "flush")
    file.reopen()
    file.close()
    slow_folder.recover()


def test_a_file_that_was_removed_is_put_back_as_it_was(tmp_path):
    path = tmp_path / "rows"
    file = appendfile.create(str(path))
    file.append(b"one\ntwo\n")
    file.write()
    file.became_durable(file.written_end)
    assert not file.is_displaced
    path.unlink()
    assert file.is_displaced
    file.append(b"three\n")
    file.reopen()
    file.write()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert not file.is_displaced
    file.close()
