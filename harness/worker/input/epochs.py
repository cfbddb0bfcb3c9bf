"""Turn one epoch over into the next: audit what came, prove where it came from.

All of it happens outside the clock. Before an epoch that is to be cold the files' pages are
dropped; before the first that is to be warm every file is read once. The ranks of a trial meet for
it: all end an epoch, one on each node prepares the page cache that they share, and all begin the
next together.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.worker.facts.resources import threads
from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence import counters, page_cache, stored_numbers
from harness.worker.input.evidence.audit import audited
from harness.worker.input.evidence.imprints import Imprints
from harness.worker.input.files import COLD, WARM, Files
from harness.worker.input.loaders.loader import Batch, Loader
from harness.worker.input.order import epoch_order
from harness.worker.input.rank_barrier import RankBarrier

_CHUNK = 1 << 22
_BY_PIECES = ("pread", "mmap")
"""What reads pieces of a file where its samples are no plain stretches: they are no samples."""


class Epochs:
    """The epochs that one rank reads; the timed loop turns them over."""

    def __init__(
        self, dataset: Dataset, files: Files, loader: Loader, batch_per_rank: int, *, whole: bool
    ) -> None:
        self.whole = whole
        """Whether a phase ends only where an epoch does: what is read is the epoch itself. A
        training reads on, its last batch of an epoch is always full, and what is left over is
        left out."""
        self.is_warm_up = True
        """Until the loop says otherwise."""
        self._dataset = dataset
        self._files = files
        self._loader = loader
        self._batch_per_rank = batch_per_rank
        self._number = -1
        self._order: Sequence[int] = ()
        self._left = self._left_out = 0
        self._delivered: List[int] = []
        self._kept: Optional[Batch] = None
        self._compared = 0
        self._imprints: Optional[Imprints] = None
        if dataset.has_index or files.reader not in _BY_PIECES:
            self._imprints = Imprints(dataset)
        self._bytes = 0
        self._resident: Optional[int] = None
        self._before: Mapping[str, int] = {}
        self._given: Optional[int] = None
        self._kind = page_cache.file_system(dataset.paths[0])
        self._barrier: Optional[RankBarrier] = None
        if files.size > 1 and files.meeting:
            self._barrier = RankBarrier(files.meeting, files.rank, files.size)

    def left(self) -> int:
        """Say how many steps the epoch still has."""
        return self._left

    def is_begun(self) -> bool:
        """Tell whether a part of the epoch has been read already."""
        return bool(self._delivered)

    def agree(self, value: float = 0.0) -> float:
        """Wait for the other ranks; give the largest value that one of them offers."""
        return value if self._barrier is None else self._barrier.agree(value)

    def next(self) -> Batch:
        """Take the next batch from the loader, and note what came."""
        batch = self._loader.next()
        self._delivered.extend(batch.samples)
        self._bytes += batch.bytes
        self._left -= 1
        if self._imprints is not None and (self.is_looked_at or not self._left):
            self._kept = batch
        return batch

    def targets(self) -> Sequence[float]:
        """Give the targets that the files hold of the samples of the last batch."""
        return stored_numbers.targets(self._dataset, self._last())

    def differs(self, inputs: memoryview) -> Optional[str]:
        """Say how the numbers of the last batch differ from those that the files hold."""
        return stored_numbers.differs(self._dataset, self._last(), inputs)

    def _last(self) -> List[int]:
        """Give the samples of the last batch."""
        return self._delivered[-self._batch_per_rank :]

    @property
    def is_looked_at(self) -> bool:
        """Whether each batch is held against what was written: in the warm-up's first epoch."""
        return self.is_warm_up and not self._number

    def look(self) -> None:
        """Hold the last batch's bytes against what was written, outside the clock: each batch of
        the first epoch, as far as the warm-up goes, and the last one of every other.
        """
        batch, self._kept = self._kept, None
        if batch is not None and self._imprints is not None:
            self._compared += self._imprints.compare(batch.samples, batch.data)

    def turn(self) -> Optional[Dict[str, Any]]:
        """End an epoch, if one was begun, and begin the next; give what the one that ended was."""
        told = self._end() if self._number >= 0 else None
        self._loader.rest()
        self.agree()
        self._begin()
        self.agree()
        return told

    def _begin(self) -> None:
        files, dataset = self._files, self._dataset
        self._number += 1
        order = self._order_of(files.rank)
        share = len(order)
        if not self.whole:  # ranks that train together take equally many steps
            shortest = min(len(self._order_of(rank)) for rank in range(files.size))
            order = order[: shortest // self._batch_per_rank * self._batch_per_rank]
        if not order:
            raise ValueError(
                "{} samples over {} ranks leave no batch of {}".format(
                    dataset.samples, files.size, self._batch_per_rank
                )
            )
        self._order = order
        self._left_out = share - len(order)
        self._left = -(-len(order) // self._batch_per_rank)
        self._delivered, self._bytes, self._compared = [], 0, 0
        if self._barrier is None or files.is_first_here:
            self._prepare()
        self.agree()
        self._resident = page_cache.resident_bytes(dataset.paths)
        self._loader.begin(order)
        self._given = counters.given(dataset.paths[0], self._kind)
        self._before = page_cache.used(self._loader.pids())

    def _prepare(self) -> None:
        """Let the page cache hold what it is to hold."""
        if self._files.cache == COLD:
            page_cache.evict(self._dataset.paths)
        elif self._files.cache == WARM and self._number == 0:
            _read_once(self._dataset.paths)

    def _order_of(self, rank: int) -> List[int]:
        files = self._files
        return epoch_order(
            self._dataset.held,
            shuffle=files.shuffle,
            seed=files.seed,
            epoch=self._number,
            rank=rank,
            size=files.size,
            buffer_samples=files.buffer_samples,
        )

    def _end(self) -> Dict[str, Any]:
        after = page_cache.used(self._loader.pids())
        spent = {name: after[name] - self._before[name] for name in after}
        now = counters.given(self._dataset.paths[0], self._kind)
        given = None if now is None or self._given is None else now - self._given
        self.look()
        told = audited(self._order, self._delivered, keeps_order=self._loader.keeps_order)
        own_share = len(self._order) / self._dataset.samples
        proved = page_cache.proof(
            max(1, round(self._dataset.bytes * own_share)),
            spent["read_bytes"],
            self._resident,
            self._kind,
            given,
        )
        return {
            "number": self._number,
            "bytes": self._bytes,
            "compared": self._compared,
            "left_out": self._left_out,
            "resident_before": self._resident,
            "read_bytes": spent["read_bytes"],
            "given_bytes": given,
            "calls": spent["syscr"],
            "call_bytes": spent["rchar"],
            "cpu_s": spent["cpu_ns"] / 1e9,
            "cpus": threads({}),
            **told,
            **proved,
        }


def _read_once(paths: Sequence[str]) -> None:
    kept = bytearray(_CHUNK)
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(kept):
                pass
