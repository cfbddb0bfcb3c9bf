"""Make an epoch cold, and tell afterwards where its bytes really came from.

Nothing here needs to be root: files are made durable, the kernel is advised to drop their pages,
and asked which pages it still holds (cachestat, Linux 6.5; before that mincore). What a process
read from storage stands in /proc/PID/io. A cache beneath the kernel, of a hypervisor or of a disk,
is beyond sight.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
from typing import Dict, Iterable, Mapping, Optional, Sequence

COLD_HERE = "cold here; beneath unknown"
"""What an epoch is called of which only this kernel's page cache is known: what lies beneath a FUSE
or network file system may have held every byte in memory."""
CHARGED = "bytes read from storage"
"""The witness where the kernel charges whoever reads."""
COLD = 0.9
"""From this share of bytes read from storage on, an epoch is cold; below what is left, warm."""
_CACHESTAT = 451
"""The number of the system call, the same on every architecture (cachestat(2))."""
_COUNTED = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs"})
"""File systems whose reading is charged to the process that read."""


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Stat(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently")
    ]


def evict(paths: Iterable[str]) -> None:
    """Make files durable and ask the kernel to forget their pages.

    Syncing a clean file still flushes the disk's cache, a millisecond each: only what is dirty, or
    may be, is synced.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            stat = _cachestat(libc, descriptor)
            if stat is None or stat.dirty or stat.writeback:
                os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident_bytes(paths: Iterable[str]) -> Optional[int]:
    """Count the bytes of files that the page cache holds; None where the kernel does not tell."""
    libc = ctypes.CDLL(None, use_errno=True)
    total = 0
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            stat = _cachestat(libc, descriptor)
            if stat is None:
                held = _mincore(libc, descriptor, size)
            else:
                held = int(stat.cache) * mmap.PAGESIZE
        finally:
            os.close(descriptor)
        if held is None:
            return None
        total += min(held, size)
    return total


def _cachestat(libc: ctypes.CDLL, descriptor: int) -> Optional[_Stat]:
    """Ask about a whole file; None where the kernel is older."""
    everything, stat = _Range(0, 0), _Stat()  # a length of 0 reaches to the end
    failed = libc.syscall(
        _CACHESTAT, descriptor, ctypes.byref(everything), ctypes.byref(stat), ctypes.c_uint(0)
    )
    return None if failed else stat


def _mincore(libc: ctypes.CDLL, descriptor: int, size: int) -> Optional[int]:
    if not size:
        return 0
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    pages = -(-size // mmap.PAGESIZE)
    told = (ctypes.c_ubyte * pages)()
    try:
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), told):
            return None
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    return mmap.PAGESIZE * sum(one & 1 for one in told)


def used(pids: Sequence[int] = ()) -> Dict[str, int]:
    """Add up what this process and others of its own have read so far, and their CPU time."""
    total = {"read_bytes": 0, "rchar": 0, "syscr": 0, "cpu_ns": 0}
    own = resource.getrusage(resource.RUSAGE_SELF)
    total["cpu_ns"] = round(1e9 * (own.ru_utime + own.ru_stime))
    for pid in (os.getpid(), *pids):
        for name, value in _io(pid).items():
            if name in total:
                total[name] += value
    total["cpu_ns"] += sum(map(_cpu_ns, pids))
    return total


def _io(pid: int) -> Mapping[str, int]:
    try:
        with open("/proc/{}/io".format(pid), encoding="ascii") as file:
            pairs = (line.split(":") for line in file)
            return {name: int(value) for name, value in pairs}
    except OSError:  # no Linux, or somebody else's process
        return {}


def _cpu_ns(pid: int) -> int:
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    ticks = int(fields[11]) + int(fields[12])
    return ticks * (10**9 // os.sysconf("SC_CLK_TCK"))


def file_system(path: str) -> str:
    """Name the type of the file system that a path lies on; empty where that is not known."""
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                point = before.split()[4]
                inside = point == "/" or path == point or path.startswith(point + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, after.split()[0]
    except OSError:
        pass
    return kind


def proof(
    file_bytes: int,
    read_bytes: Optional[int],
    resident: Optional[int],
    kind: str,
    given: Optional[int] = None,
) -> Dict[str, object]:
    """Say what share of an epoch's bytes came from storage, who says so, and what to call it.

    On a file system that charges nobody for its reading (FUSE, network ones) the pages that were
    not in memory before are a witness; where the device or Lustre's servers count what they gave
    the node, both have to say so. Where nobody does, cold is not proved of what lies beneath.
    """
    share: Optional[float] = None
    witness = ""
    if kind in _COUNTED and read_bytes is not None:
        share, witness = min(1.0, read_bytes / file_bytes), CHARGED
    elif resident is not None:
        share, witness = max(0.0, 1.0 - resident / file_bytes), "pages not in memory before"
        if given is None and share >= COLD:
            return {"cold_fraction": share, "witness": witness, "cache": COLD_HERE}
        if given is not None:
            share = min(share, given / file_bytes)
            witness += ", and bytes that storage gave the node"
    return {"cold_fraction": share, "witness": witness, "cache": label(share)}


def label(share: Optional[float]) -> str:
    """Call an epoch cold, warm or mixed; unknown where nobody can tell."""
    if share is None:
        return "unknown"
    if share >= COLD:
        return "cold"
    return "warm" if share <= 1 - COLD else "mixed"
