"""Read what storage gave the whole node: a witness beside a process's own account.

A block device counts its sectors (``/sys/dev/block/MAJOR:MINOR/stat``, the kernel's
Documentation/block/stat.rst). A Lustre client counts what its servers sent by server, where it lets
one read that (``osc.*.stats``, Lustre operations manual). Others on the node are counted in.
"""

from __future__ import annotations

import glob
import os
from typing import Optional

_SECTOR = 512
_READ = 2
"""The place of the sectors read among a device's counts."""
_SERVERS = ("proc/fs/lustre/osc", "sys/kernel/debug/lustre/osc", "sys/fs/lustre/osc")


def given(path: str, kind: str, root: str = "/") -> Optional[int]:
    """Give the bytes that what lies beneath a file has given so far; None where nobody tells."""
    return _servers(root) if kind == "lustre" else _device(os.stat(path).st_dev, root)


def _device(number: int, root: str) -> Optional[int]:
    name = "{}:{}".format(os.major(number), os.minor(number))
    try:
        with open(os.path.join(root, "sys/dev/block", name, "stat"), encoding="ascii") as file:
            return _SECTOR * int(file.read().split()[_READ])
    except OSError:  # memory, a network, FUSE
        return None


def _servers(root: str) -> Optional[int]:
    for place in _SERVERS:
        files = glob.glob(os.path.join(root, place, "*", "stats"))
        try:
            if files:
                return sum(map(_sent, files))
        except PermissionError:
            continue
    return None


def _sent(path: str) -> int:
    """Find the sum in ``read_bytes 12 samples [bytes] 4096 1048576 9437184``."""
    with open(path, encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if fields and fields[0] == "read_bytes":
                return int(fields[6])
    return 0
