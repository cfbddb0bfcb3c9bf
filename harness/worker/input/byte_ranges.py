"""Read samples as plain stretches of bytes, with pread or through mapped memory.

This is what the system gives with nothing parsed and nothing decoded. A file of one sample is
opened anew each time, as every loader must; a file of many is kept open. Where only a format's
reader knows the places of samples (LMDB, HDF5, npz), each stands for a piece of its file: together
they are all its bytes.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Dict, Tuple

from harness.worker.input.dataset import Dataset


class Stretches:
    """The samples of a set by their places."""

    def __init__(self, dataset: Dataset) -> None:
        self.room: int = dataset.manifest["largest"]
        """Bytes of the largest stretch."""
        if dataset.has_index:
            self._stretch = dataset.stretch
            dataset.index()  # read once here, not by the first sample
        else:
            self._stretch = dataset.piece
            self.room = max(-(-size // n) for size, n in zip(dataset.sizes, dataset.held))
        is_shared = max(dataset.held) > 1
        self._kept: Dict[str, int] = {}
        if is_shared:
            self._kept = {path: os.open(path, os.O_RDONLY) for path in dataset.paths}
        self._maps: Dict[str, mmap.mmap] = {}

    def pread(self, sample: int, into: memoryview) -> int:
        """Read one sample's bytes."""
        path, offset, length = self._stretch(sample)
        kept = self._kept.get(path)
        if kept is not None:
            return read_whole(kept, into[:length], offset, path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return read_whole(descriptor, into[:length], offset, path)
        finally:
            os.close(descriptor)

    def mapped(self, sample: int, into: memoryview) -> int:
        """Copy one sample's bytes out of mapped memory: each page that is missing is a fault."""
        path, offset, length = self._stretch(sample)
        kept = self._kept.get(path)
        if kept is not None:
            there = self._maps.get(path)
            if there is None:
                there = self._maps[path] = mmap.mmap(kept, 0, prot=mmap.PROT_READ)
            return copied(there, offset, into[:length])
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as own:
                return copied(own, offset, into[:length])
        finally:
            os.close(descriptor)

    def rest(self) -> None:
        """Unmap everything: mapped pages cannot be dropped."""
        for there in self._maps.values():
            there.close()
        self._maps.clear()

    def close(self) -> None:
        """Close what was kept open."""
        self.rest()
        for descriptor in self._kept.values():
            os.close(descriptor)


def read_whole(descriptor: int, into: memoryview, offset: int, path: str) -> int:
    """Fill a buffer from an open file, in more than one call where one gives less."""
    done = os.preadv(descriptor, [into], offset)
    while done < len(into):
        more = os.preadv(descriptor, [into[done:]], offset + done)
        if not more:
            raise EOFError("{} ends before its sample does; `bakeoff data check`".format(path))
        done += more
    return done


def copied(source: mmap.mmap, offset: int, into: memoryview) -> int:
    """Copy without holding the interpreter's lock: a page fault may take long."""
    length = len(into)
    address, rest = _address(source)
    if offset + length > rest:
        raise EOFError("a mapped file ends before its sample does; `bakeoff data check`")
    target = (ctypes.c_char * length).from_buffer(into)
    ctypes.memmove(target, address + offset, length)
    return length


def _address(source: mmap.mmap) -> Tuple[int, int]:
    """Find where a read-only mapping lies; ctypes itself takes writable ones only."""
    view = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(source), ctypes.byref(view), ctypes.c_int(0)
    )
    address, length = view.buf, view.len
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return int(address), int(length)


class _Buffer(ctypes.Structure):
    """``Py_buffer``, the same from Python 3.7 on (the C API's reference)."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]
