"""Which file system a path lies on, and whether a secret may lie there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.core.secret_places import keeps_secrets
from overnight.formats.mountinfo import mount_of

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 0:40 / /home/u/my\040stick rw,nosuid - vfat /dev/sdb1 rw,umask=077
32 22 0:41 / /mnt/far rw - fuse.sshfs u@far: rw,user_id=0,allow_other
33 22 0:42 / /mnt/near rw - fuse.sshfs u@far: rw,user_id=0
34 22 0:43 / /mnt/twice rw - ext4 /dev/sdc1 rw
35 34 0:44 / /mnt/twice rw - cifs //win/share rw
not a line of it
"""


@pytest.mark.parametrize(("path", "kind", "keeps"), [
    ("/etc/x", "ext4", True), ("/home/u/run_join", "nfs4", True),
    ("/home/u/my stick/run_join", "vfat", False), ("/homework/x", "ext4", True),
    ("/mnt/far/x", "fuse.sshfs", False), ("/mnt/near/x", "fuse.sshfs", True),
    ("/mnt/twice/x", "cifs", False),
])  # fmt: skip
def test_the_file_system_of_a_path_is_found_and_judged(path, kind, keeps):
    mount = mount_of(TABLE, path)
    assert mount is not None
    assert mount.kind == kind
    assert keeps_secrets(mount.kind, mount.options) is keeps


def test_modes_count_where_the_kernel_compares_them():
    assert keeps_secrets("fuse", {"allow_other", "default_permissions"})


@given(st.text(), st.text(min_size=1).map(lambda text: f"/{text}"))
def test_no_table_makes_it_fail(table, path):
    mount = mount_of(table, path)
    assert mount is None or path.startswith(mount.point)
