"""State what a loader is: what hands over one batch of samples after the other.

A loader is begun outside the clock and reads nothing before the first ``next``; whatever it does
after that, in threads and processes of its own, is timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


class Batch(NamedTuple):
    """Samples as they were delivered; their data are valid until the next batch is asked for."""

    samples: Sequence[int]
    data: Any
    """A list of buffers, or whatever the framework trains on."""
    bytes: int


class Loader(Protocol):
    """What delivers the batches of an epoch."""

    keeps_order: bool
    """Whether samples come exactly in the order asked for."""

    def begin(self, order: Sequence[int]) -> None:
        """Start an epoch; read nothing yet."""

    def next(self) -> Batch:
        """Give the next batch; the last one of an epoch may be smaller."""

    def rest(self) -> None:
        """Let go, after an epoch, of what would hold the files' pages in memory."""

    def pids(self) -> Sequence[int]:
        """Name the processes that read for this one."""

    def close(self) -> None:
        """Give back threads, processes and memory."""
