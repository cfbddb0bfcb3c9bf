"""Read the kernel's lists of numbers: ``0-3,8,10-11``, of CPUs and of memory nodes."""

from __future__ import annotations

MOST = 1 << 16
"""Eight times what a kernel can be built for; a longer range is no list of a machine's parts."""


def read_list(text: str) -> tuple[int, ...]:
    """Give the numbers in their order; ValueError where the text is no such list."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if max(begin, end) >= MOST:
            raise ValueError(f"{part[:40]!r} names more than the {MOST} parts a machine may have")
        found.extend(range(begin, end + 1))
        if len(found) > MOST:
            raise ValueError(f"more than the {MOST} parts a machine may have are named")
    return tuple(found)
