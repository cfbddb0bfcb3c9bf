"""Count bytes over a GPU's NVLinks, by whichever counters its generation has.

NVLink 2 to 4 (Volta to Hopper) count KiB over all links together; NVLink 5 (Blackwell) counts
bytes, link by link where the driver gives no sum. Those of NVLink 1 (Pascal) have to be set up
first, which would take them from whoever uses them: there, it is a gap. Source: nvml.h.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.collect.nvml_fields import ALL_LINKS, BITS, FORMAT, number
from harness.machine.gpus import MOST_LINKS
from harness.store.samples.samples_format import NOT_READ, UNSUPPORTED, Channel

_NAMES = ("gpu.nvlink.sent", "gpu.nvlink.received")
_DATA = "all links, data only"

Ask = Callable[[int, Any], int]
"""Has NVML fill so many field values, and gives its result."""


@dataclass(frozen=True)
class _Counters:
    """Counters of one generation: sent and received."""

    fields: tuple[int, int]
    scale: float
    meaning: str
    scopes: tuple[int, ...] = (ALL_LINKS,)


_GENERATIONS = (
    _Counters((138, 139), 1024.0, _DATA),
    _Counters((202, 204), 1.0, "all links"),
    _Counters((202, 204), 1.0, "all links, each counted by itself", tuple(range(MOST_LINKS))),
)


class NvLinkCounters:
    """What a GPU sent and received over its links since the driver was loaded."""

    def __init__(self, ask: Ask | None, scope: str, gaps: Mapping[int, int]) -> None:
        self._ask = ask
        self._gaps = gaps
        self._gap = UNSUPPORTED
        """What a GPU without any such counter says."""
        self._count = 0
        wraps, scale, meaning = None, 1024.0, _DATA
        for one in _GENERATIONS if ask is not None else ():
            answered = self._answered(one)
            if answered:
                self._lay_out(one, answered)
                wraps, scale, meaning = self._wraps(), one.scale, one.meaning
                break
        self.channels = tuple(
            Channel(name, "bytes", "counter", scope, scale, wraps, meaning) for name in _NAMES
        )

    def read(self) -> list[int]:
        """Give both sums, or the gap that there is instead."""
        if not self._count:
            return [self._gap, self._gap]
        rows = self._rows()
        if isinstance(rows, int):
            return [rows, rows]
        half = self._count // 2
        sums = []
        for part in (rows[:half], rows[half:]):
            failed = [result for *_, result, _ in part if result]
            sums.append(
                self._gaps.get(failed[0], NOT_READ)
                if failed
                else sum(number(kind, value) for *_, kind, _, value in part)
            )
        return sums

    def _answered(self, one: _Counters) -> tuple[int, ...]:
        """Name the links of which both directions are counted; none where they would wrap apart."""
        self._lay_out(one, one.scopes)
        rows = self._rows()
        self._count = 0
        if isinstance(rows, int):
            self._gap = rows
            return ()
        half = len(one.scopes)
        pairs = zip(rows[:half], rows[half:], strict=True)
        good = tuple(
            scope
            for scope, pair in zip(one.scopes, pairs, strict=True)
            if all(result == 0 and (half == 1 or kind not in BITS) for *_, kind, result, _ in pair)
        )
        if not good and half == 1:
            self._gap = self._gaps.get(rows[0][5], NOT_READ)
        return good

    def _lay_out(self, one: _Counters, scopes: Sequence[int]) -> None:
        words = [(field, scope) for field in one.fields for scope in scopes]
        self._count = len(words)
        self._layout = struct.Struct(FORMAT * self._count)
        self._buffer = ctypes.create_string_buffer(self._layout.size)
        empty = (0, 0, 0, 0, 0)
        self._layout.pack_into(
            self._buffer, 0, *(each for pair in words for each in (*pair, *empty))
        )

    def _rows(self) -> list[tuple[int, ...]] | int:
        """Ask once; give each value's fields, or the gap where the call itself failed."""
        assert self._ask is not None, "a form is laid out where NVML can be asked"
        result = self._ask(self._count, ctypes.byref(self._buffer))
        if result:
            return self._gaps.get(result, NOT_READ)
        told = self._layout.unpack(self._buffer)
        return [told[at : at + len(FORMAT)] for at in range(0, len(told), len(FORMAT))]

    def _wraps(self) -> int | None:
        """Say where the counter begins anew; sums are of such as never do."""
        rows = self._rows()
        bits = None if isinstance(rows, int) else BITS.get(rows[0][4])
        return None if bits is None else 1 << bits
