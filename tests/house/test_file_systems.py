"""The bad file systems that other tests stand on really are what they say."""

from __future__ import annotations

import errno
import os
import time

import pytest

from tests.file_systems import FrozenFolder, FullFolder, SlowFolder


@pytest.mark.needs("mounts")
def test_a_full_folder_takes_part_of_a_write_and_then_none(full_folder: FullFolder) -> None:
    full_folder.fill(leave_kib=4)
    handle = os.open(full_folder.path / "file", os.O_WRONLY | os.O_CREAT)
    try:
        assert 0 < os.write(handle, b"x" * 64 * 1024) < 64 * 1024
        with pytest.raises(OSError, match="No space left") as caught:
            os.write(handle, b"x")
        assert caught.value.errno == errno.ENOSPC
        full_folder.relieve()
        assert os.write(handle, b"x") == 1
    finally:
        os.close(handle)


@pytest.mark.needs("mounts")
def test_a_frozen_folder_can_be_read_and_not_written(frozen_folder: FrozenFolder) -> None:
    file = frozen_folder.path / "file"
    file.write_text("before")
    frozen_folder.freeze()
    assert file.read_text() == "before"
    with pytest.raises(OSError, match="Read-only"):
        file.write_text("during")
    frozen_folder.thaw()
    file.write_text("after")


@pytest.mark.needs("fuse")
def test_a_slow_folder_takes_its_time_and_loses_nothing(slow_folder: SlowFolder) -> None:
    file = slow_folder.path / "file"
    with file.open("ab", buffering=0) as appended:
        appended.write(b"one ")
        slow_folder.slow_down(0.5, "write")
        began = time.monotonic()
        appended.write(b"two")
        assert time.monotonic() - began >= 0.5
    slow_folder.recover()
    assert file.read_bytes() == b"one two"


@pytest.mark.needs("fuse")
def test_a_slow_folder_can_be_made_to_fail_and_recovers(slow_folder: SlowFolder) -> None:
    file = slow_folder.path / "file"
    file.touch()
    with file.open("ab", buffering=0) as appended:
        slow_folder.fail("ESTALE", "write", "fsync")
        with pytest.raises(OSError, match="Stale") as caught:
            appended.write(b"lost")
        assert caught.value.errno == errno.ESTALE
        slow_folder.recover()
        appended.write(b"kept")
    assert file.read_bytes() == b"kept"
