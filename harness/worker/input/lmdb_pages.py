"""Check that an LMDB file holds every page that it counts, before it is mapped.

A map reaches beyond the end of a file that was cut short, and the kernel ends who reads there with
SIGBUS. Each of the first two pages states the number of the last one (lmdb's mdb.c: MDB_meta); the
one of the newer transaction counts, and LMDB itself goes to no page after that.
"""

from __future__ import annotations

import os
import struct
from typing import Optional, Tuple

_HEADER = 16
_META = struct.Struct("<II8x8xI44x48xQQ")
"""Magic, version; address, map size; the size of a page, two trees; last page, transaction."""
_MAGIC = 0xBEEFC0DE
_SMALLEST, _LARGEST = 256, 1 << 16


def why_cut_short(path: str) -> Optional[str]:
    """Say what is missing of an LMDB file; None where all its pages are there."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        first = _meta(file.read(_HEADER + _META.size))
        if first is None:
            return "its first page is damaged"
        page = first[0]
        file.seek(page)
        second = _meta(file.read(_HEADER + _META.size))
    if second is None:
        return "its second page is damaged, or missing"
    _, last, _ = max(first, second, key=lambda one: one[2])
    needed = (last + 1) * page
    if size < needed:
        return "it has {:,} of {:,} bytes".format(size, needed)
    return None


def _meta(data: bytes) -> Optional[Tuple[int, int, int]]:
    """Read the size of a page, the number of the last one and the transaction."""
    if len(data) < _HEADER + _META.size:
        return None
    magic, _, page, last, transaction = _META.unpack_from(data, _HEADER)
    is_page = _SMALLEST <= page <= _LARGEST and page & (page - 1) == 0
    return (page, last, transaction) if magic == _MAGIC and is_page else None
