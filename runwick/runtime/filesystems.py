"""Whether file locks can be trusted where a file lies, by the kernel's table of mounts.

They work between processes of one machine. On a network file system two machines can both hold a lock, or see none of
each other's: a database would be damaged without a sign of it, and a living process be taken for dead.
"""

import enum
import re
from pathlib import Path
from typing import Final, NamedTuple

MOUNTS: Final = Path("/proc/self/mountinfo")

# fmt: off
_NETWORK: Final = frozenset({
    "9p", "afs", "beegfs", "ceph", "cephfs", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "moosefs",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "s3fs", "smb3", "smbfs", "sshfs", "webdav",
})
_NETWORK_THROUGH_FUSE: Final = _NETWORK | {
    "blobfuse", "blobfuse2", "curlftpfs", "davfs2", "gcsfuse", "goofys", "juicefs", "mfs", "mount-s3", "rclone",
    "seaweedfs", "smbnetfs",
}
_LOCAL: Final = frozenset({
    "apfs", "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs", "hfsplus", "jfs", "msdos",
    "nilfs2", "ntfs", "ntfs3", "overlay", "ramfs", "reiserfs", "tmpfs", "ubifs", "udf", "vfat", "xfs", "zfs",
})
# fmt: on


class Trust(enum.Enum):
    LOCAL = "local"
    NETWORK = "network"
    UNVERIFIED = "unverified"
    """Neither known as local nor as network."""


class Filesystem(NamedTuple):
    """Where a file lies."""

    kind: str
    """The type's name as the mount table has it, or ``unknown``."""
    trust: Trust


def filesystem_of(path: Path, mounts: Path = MOUNTS) -> Filesystem:
    """The file system that holds `path` (absolute, links resolved), whether or not the file exists yet."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return Filesystem("unknown", Trust.UNVERIFIED)  # not Linux, or no /proc here
    kind = _kind(path, table)
    plain = kind.removeprefix("fuse.")
    if plain in (_NETWORK if plain == kind else _NETWORK_THROUGH_FUSE):
        return Filesystem(kind, Trust.NETWORK)
    return Filesystem(kind, Trust.LOCAL if kind in _LOCAL else Trust.UNVERIFIED)


def _kind(path: Path, table: str) -> str:
    """The type of the deepest mount above `path`; of several at one place the last hides the others.

    A line reads ``id parent major:minor root MOUNT-POINT options… - TYPE source options``.
    """
    deepest, kind = -1, "unknown"
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = Path(_unescaped(fields[4]))
        if len(point.parts) >= deepest and path.is_relative_to(point):
            deepest, kind = len(point.parts), after.split(" ")[0]
    return kind


def _unescaped(text: str) -> str:
    """Undo the table's octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
