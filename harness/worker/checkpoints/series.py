"""Take one trial's checkpoints, one after the other, and restore the newest.

Straight: the saver writes, the files become durable, the folder appears; training stands still
until then. Through a fast tier: the same there, and the drain to the slow one goes on behind the
training. A saver that writes by itself (asynchronous) is waited for behind the training too.

With several ranks the first one keeps the files; the others take part where the saver wants all.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
from typing import Callable, List, Optional

from harness.worker.checkpoints import checkpoint_files as keeping
from harness.worker.checkpoints.background import Background, drain
from harness.worker.checkpoints.checkpoint_files import Kept
from harness.worker.checkpoints.request import Asked
from harness.worker.contracts import Saver
from harness.worker.place import Place

KEEP = 2
"""So many complete ones stay: the newest, and the one before it should that not be true."""
ROOM = 2
"""So many may lie on the fast tier, waiting for the slow one or on their way to it."""
_FULL_BYTES = 1 << 20

Said = Callable[[int, str], None]
"""Told of a step's checkpoint: saved (whole on its first tier), draining, durable (whole where it
stays)."""


class Full(OSError):
    """Say which tier has no room left for a checkpoint."""


class NothingTrue(Exception):
    """Say that no checkpoint could be restored."""


class Series:
    """The checkpoints of one trial, as one rank sees them."""

    def __init__(self, asked: Asked, saver: Saver, place: Place) -> None:
        self.asked = asked
        self.saver = saver
        self.is_keeper = place.rank == 0
        self._first = asked.through or asked.to
        self._behind = Background(ROOM if asked.through else 1)
        self._agree: Callable[[], None] = lambda: None
        self._said: Said = lambda step, state: None
        if self.is_keeper:
            for folder in self.places():
                os.makedirs(folder, exist_ok=True)
                keeping.sweep(folder)
            if asked.through:
                self._take_up(asked.through)

    def places(self) -> List[str]:
        """Name the tiers' folders, the fast one first."""
        return [self._first] if self._first == self.asked.to else [self._first, self.asked.to]

    def watch(self, said: Said, agree: Callable[[], None]) -> None:
        """Tell ``said`` what becomes of checkpoints; ranks meet in ``agree``."""
        self._said = said
        self._agree = agree

    def due(self, done: int) -> int:
        """Say how many steps remain until the next checkpoint."""
        return self.asked.every - done % self.asked.every

    def save(self, step: int) -> None:
        """Take a checkpoint; return as soon as training may go on."""
        if not self.is_keeper and not self.saver.together:
            return
        self._behind.reserve()
        try:
            if self.is_keeper:
                keeping.begin(self._first, step)
            if self.saver.together:
                self._agree()
            wait = self.saver.save(keeping.begun(self._first, step))
            if self.saver.together:
                self._agree()
            one = None if wait is not None else self._seal(step)
        except Exception as fault:
            self._behind.release()
            raise self._explained(fault, self._first, step) from fault
        if wait is None and not (one is not None and self.asked.through):
            self._behind.release()
        else:
            self._behind.put(functools.partial(self._go_on, step, wait, one))

    def finish(self) -> None:
        """Wait until every checkpoint is where it stays."""
        self._behind.finish()

    def newest(self) -> Kept:
        """Give what a restart takes: the newest of any tier whose every byte has its hash."""
        found = keeping.newest(self.places())
        if found is None:
            raise NothingTrue("no checkpoint in {} is whole and true".format(self.places()))
        return found

    def close(self) -> None:
        """Remove the trial's checkpoints: they were made to be timed."""
        self._behind.close()
        if self.is_keeper:
            for folder in self.places():
                shutil.rmtree(folder, ignore_errors=True)

    def _take_up(self, fast: str) -> None:
        """Drain what a process that was cut off left on the fast tier, the oldest first."""
        for one in reversed(keeping.complete(fast)):
            if keeping.is_true(one):
                self._behind.reserve()
                self._behind.put(functools.partial(self._go_on, one.step, None, one))
            else:
                keeping.drop(one)

    def _seal(self, step: int) -> Optional[Kept]:
        if not self.is_keeper:
            return None
        one = keeping.seal(self._first, step)
        self._said(step, "saved")
        if not self.asked.through:
            self._said(step, "durable")
            self._forget(self.asked.to)
        return one

    def _go_on(self, step: int, wait: Optional[Callable[[], None]], one: Optional[Kept]) -> None:
        at = self._first
        try:
            if wait is not None:
                wait()
                one = self._seal(step)
            if one is not None and self.asked.through:
                at = self.asked.to
                self._said(step, "draining")
                drain(one, at)
                self._said(step, "durable")
                keeping.drop(one)
                self._forget(at)
        except Exception as fault:
            raise self._explained(fault, at, step) from fault

    def _forget(self, place: str) -> None:
        for old in keeping.complete(place)[KEEP:]:
            keeping.drop(old)

    def _explained(self, fault: Exception, place: str, step: int) -> Exception:
        """Clear what was begun; name the tier where it is full, whatever words a saver has."""
        is_full = isinstance(fault, OSError) and fault.errno == errno.ENOSPC
        is_full = is_full or os.strerror(errno.ENOSPC) in str(fault)
        is_full = is_full or _free_bytes(place) < _FULL_BYTES
        if self.is_keeper:
            shutil.rmtree(keeping.begun(place, step), ignore_errors=True)
        if not is_full:
            return fault
        said = "{}; the checkpoint of step {} did not fit, those before it are whole".format(
            os.strerror(errno.ENOSPC), step
        )
        return Full(errno.ENOSPC, said, place)


def _free_bytes(place: str) -> int:
    told = os.statvfs(place)
    return told.f_bavail * told.f_frsize
