"""Which file system a path lies on, by a table of mounts."""

from pathlib import Path

import pytest

from runwick.runtime.filesystems import Filesystem, Trust, filesystem_of

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /tmp rw,nosuid - tmpfs tmpfs rw
31 22 0:41 / /mnt/share rw - nfs4 filer:/export rw,vers=4.2
32 22 0:42 / /mnt/share/local rw master:3 - xfs /dev/vdb rw
33 22 0:43 / /mnt/two\\040words rw - cifs //filer/share rw
34 22 0:44 / /mnt/odd rw - ext4 /dev/vdc rw
35 34 0:45 / /mnt/odd rw - fuse.sshfs host:/ rw
36 22 0:46 / /mnt/box rw - fuse.somethingnew none rw
37 22 0:47 / /mnt/bucket rw - fuse.rclone remote: rw
38 22 0:48 / /host rw - 9p share rw
39 22 0:49 / /mnt/mfs rw - mfs /dev/mfs rw
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/srv/jobs.db", Filesystem("ext4", Trust.LOCAL)),
        ("/tmp/jobs.db", Filesystem("tmpfs", Trust.LOCAL)),
        ("/tmpjobs.db", Filesystem("ext4", Trust.LOCAL)),
        ("/mnt/share/jobs.db", Filesystem("nfs4", Trust.NETWORK)),
        ("/mnt/share/local/deep/jobs.db", Filesystem("xfs", Trust.LOCAL)),
        ("/mnt/share/localish/jobs.db", Filesystem("nfs4", Trust.NETWORK)),
        ("/mnt/two words/jobs.db", Filesystem("cifs", Trust.NETWORK)),
        ("/mnt/odd/jobs.db", Filesystem("fuse.sshfs", Trust.NETWORK)),
        ("/mnt/bucket/jobs.db", Filesystem("fuse.rclone", Trust.NETWORK)),
        ("/host/jobs.db", Filesystem("9p", Trust.NETWORK)),
        ("/mnt/box/jobs.db", Filesystem("fuse.somethingnew", Trust.UNVERIFIED)),
        ("/mnt/mfs/jobs.db", Filesystem("mfs", Trust.UNVERIFIED)),
    ],
)
def test_the_deepest_and_last_mount_above_the_path_counts(tmp_path: Path, path: str, found: Filesystem) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(TABLE)
    assert filesystem_of(Path(path), mounts) == found


def test_without_a_table_nothing_is_verified(tmp_path: Path) -> None:
    assert filesystem_of(Path("/srv/jobs.db"), tmp_path / "none") == Filesystem("unknown", Trust.UNVERIFIED)


def test_the_real_table_can_be_read() -> None:
    assert filesystem_of(Path("/proc/self/status")).kind == "proc"
