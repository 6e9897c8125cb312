"""Where a file of mode 0600 is really nobody else's business."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set

WITHOUT_MODES = frozenset({
    "msdos", "vfat", "exfat", "ntfs", "ntfs3", "fuseblk", "cifs", "smb3", "smbfs", "9p", "hfs",
    "hfsplus", "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs-fuse",
})
"""File systems that make modes up, or that others reach by other rules."""


def keeps_secrets(kind: str, options: Set[str]) -> bool:
    """Whether modes of files mean something on such a file system.

    One in user space lets in only who mounted it, unless it says ``allow_other``; then the
    kernel compares modes only with ``default_permissions``.

    >>> keeps_secrets("nfs4", frozenset()), keeps_secrets("vfat", frozenset())
    (True, False)
    """
    if kind in WITHOUT_MODES:
        return False
    if kind == "fuse" or kind.startswith("fuse."):
        return "allow_other" not in options or "default_permissions" in options
    return True
