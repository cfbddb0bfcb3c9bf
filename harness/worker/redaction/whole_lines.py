"""Cut a stream where nothing that may be a secret goes on: at a line's end, after a key's block."""

from __future__ import annotations

import re
from typing import List

from harness.worker.redaction.shapes import BLOCKS

_LONGEST = 1 << 20
"""A line or a block that is longer is left out: cut in two, it would show the ends of a secret."""
_BLOCKS = tuple(mark.encode() for mark in BLOCKS)
_OF_A_BLOCK = re.compile(rb"[A-Z][A-Za-z-]+: .*|[A-Za-z0-9+/=\\]*")
_BLOCK_ENDS = b"-----END "


class WholeLines:
    """Hold a stream's unfinished line or block back until it is complete."""

    def __init__(self) -> None:
        self._block: List[bytes] = []
        """The lines of a block that may go on."""
        self._block_bytes = 0
        self._is_block = False
        self._line = bytearray()
        self._line_left_out = 0
        """Bytes of the unfinished line that will not be shown, as it is too long."""
        self._block_left_out = 0
        self.left_out = 0

    @property
    def held(self) -> bytes:
        """What came since the last border."""
        return b"".join(self._block) + bytes(self._line)

    def feed(self, data: bytes) -> bytes:
        """Take what was read; give all that ends at a border, which may be nothing."""
        cut = data.rfind(b"\n") + 1
        ready: List[bytes] = []
        if cut:
            whole = self._finished_line(data[:cut])
            if self._is_block or _may_begin_block(whole):
                for line in whole.split(b"\n")[:-1]:
                    self._take(line + b"\n", ready)
            else:
                ready.append(whole)
        self._line += data[cut:]
        if self._line_left_out or len(self._line) > _LONGEST:
            self._shorten_line(ready)
        return b"".join(ready)

    def end(self) -> bytes:
        """Give what is left, once nothing more will come."""
        ready: List[bytes] = []
        last = self._finished_line(b"")
        self._finish_block(ready)
        return b"".join([*ready, last])

    def _finished_line(self, rest: bytes) -> bytes:
        """Give the line that was begun with what follows it, or say how long it was."""
        if not self._line_left_out:
            whole = bytes(self._line) + rest
        else:
            ends = rest.find(b"\n") + 1
            whole = self._note(self._line_left_out + ends) + rest[ends:]
        self._line, self._line_left_out = bytearray(), 0
        return whole

    def _shorten_line(self, ready: List[bytes]) -> None:
        shown = 0 if self._is_block or self._line_left_out else self._line.rfind(b"\r") + 1
        if shown:  # a bar of progress, which begins its line again and again
            ready.append(bytes(self._line[:shown]))
            del self._line[:shown]
        else:
            self._line_left_out += len(self._line)
            self._line = bytearray()

    def _take(self, line: bytes, ready: List[bytes]) -> None:
        """Add a line to the block that it goes on with, or give it with the block before it."""
        ends = _BLOCK_ENDS in line
        goes_on = self._is_block and (ends or _OF_A_BLOCK.fullmatch(line.strip()) is not None)
        if not goes_on:
            self._finish_block(ready)
        self._is_block = goes_on or _may_begin_block(line)
        if not self._is_block:
            ready.append(line)
            return
        self._block.append(line)
        self._block_bytes += len(line)
        if self._block_left_out or self._block_bytes > _LONGEST:
            self._block_left_out += self._block_bytes
            self._block, self._block_bytes = [], 0
        if ends:
            self._finish_block(ready)

    def _finish_block(self, ready: List[bytes]) -> None:
        ready += [self._note(self._block_left_out)] if self._block_left_out else self._block
        self._block, self._block_bytes, self._block_left_out = [], 0, 0
        self._is_block = False

    def _note(self, count: int) -> bytes:
        self.left_out += count
        return left_out_note(count)


def left_out_note(count: int) -> bytes:
    """Say in a stream that some of its bytes are missing."""
    return f"[bakeoff: {count} bytes left out here]\n".encode()


def border_before(lines: bytes, position: int) -> int:
    """Find the last border at or before a position, in lines that begin at one."""
    return len(WholeLines().feed(lines[:position]))


def border_after(lines: bytes, position: int) -> int:
    """Find the first border at or after a position, in lines that begin at one."""
    stream = WholeLines()
    given = len(stream.feed(lines[:position]))
    while given < position and position < len(lines):
        following = (lines.find(b"\n", position) + 1) or len(lines)
        given += len(stream.feed(lines[position:following]))
        position = following
    return position


def _may_begin_block(text: bytes) -> bool:
    return any(map(text.__contains__, _BLOCKS))
