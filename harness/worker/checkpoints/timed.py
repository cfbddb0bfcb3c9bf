"""The loop's part about checkpoints: when each is due, its times, and their proof.

It reads no clock but the loop's. After the last measured window comes the proof, each time:

    wait until all checkpoints are where they stay
    digest of the state; one more checkpoint; a few steps, which change the state meanwhile
    wait until it is where it stays; take the newest on any tier whose every byte has its hash, as
    a restart would; drop its pages; clock; restore; sync; clock
    digest of the state again, and the files' hashes against the manifest

A checkpoint that does not bring back the state of its moment fails the trial. Of several ranks the
first compares: the others may hold statistics of their own, which data parallelism discards.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from harness.worker.checkpoints import checkpoint_files as keeping
from harness.worker.checkpoints.series import Series
from harness.worker.events import Events
from harness.worker.input.evidence import page_cache

MUTATING_STEPS = 3


class NotRestored(Exception):
    """Say that what was restored is not what was saved."""


class Timed:
    """One rank's checkpoints on the loop's clock."""

    def __init__(
        self, series: Series, events: Events, clock: Callable[[], int], agree: Callable[[], None]
    ) -> None:
        self._series = series
        self._events = events
        self._clock = clock
        self._agree = agree
        self._seen: List[Tuple[int, str, int]] = []
        self.is_the_work = series.asked.is_the_work
        self.due = series.due
        self.save = series.save
        """Take a checkpoint; whoever calls times it."""
        series.watch(self._note, agree)

    def lies_within(self, step: int, steps: int) -> bool:
        """Tell whether a window ends with a checkpoint that is the work itself."""
        return self.is_the_work and self.due(step) == steps

    def follow(self, phase: str, step: int, start: int, end: int) -> None:
        """Take the checkpoint that is due after a window, or say that it lay within."""
        if self.due(step) < self.due(0):
            self.tell()
        elif self.is_the_work:
            self.say(phase, step, start, end)
        else:
            self.take(phase, step)

    def take(self, phase: str, step: int) -> None:
        """Take a checkpoint between two windows; the ranks go on together."""
        start = self._clock()
        self.save(step)
        self.say(phase, step, start, self._clock())
        self._agree()

    def say(self, phase: str, step: int, start: int, end: int) -> None:
        """Say how long training stood still."""
        saver = self._series.saver
        told = {"saver": saver.name, "bytes": saver.bytes}
        self._events.say("checkpoint", phase=phase, step=step, start=start, end=end, **told)
        self.tell()

    def tell(self) -> None:
        """Say what has become of checkpoints since; outside every window."""
        seen, self._seen = self._seen, []
        for step, state, t in seen:
            self._events.say("checkpoint-state", step=step, state=state, t=t)

    def prove(self, step: int, go_on: Callable[[int], Any], sync: Callable[[], None]) -> None:
        """Take one checkpoint more, change the state, restore, and compare."""
        series, saver = self._series, self._series.saver
        series.finish()
        self.tell()
        before = saver.digest() if series.is_keeper else ""
        self.take("prove", step)
        go_on(MUTATING_STEPS)
        series.finish()
        self._agree()
        self.tell()
        one = series.newest()
        kind, paths = page_cache.file_system(one.folder), one.paths()
        page_cache.evict(paths)
        resident, read = page_cache.resident_bytes(paths), page_cache.used()["read_bytes"]
        start = self._clock()
        saver.restore(one.folder)
        sync()
        end = self._clock()
        read = page_cache.used()["read_bytes"] - read
        told: Dict[str, Any] = dict(page_cache.proof(max(1, one.bytes), read, resident, kind))
        told.update(files_true=keeping.is_true(one), state_true=None)
        if series.is_keeper:
            told["state_true"] = saver.digest() == before
        self._events.say("restored", step=one.step, start=start, end=end, bytes=one.bytes, **told)
        if one.step != step or not told["files_true"] or told["state_true"] is False:
            raise NotRestored(_complaint(step, one.step, told))
        self._agree()

    def _note(self, step: int, state: str) -> None:
        self._seen.append((step, state, self._clock()))


def _complaint(step: int, found: int, told: Dict[str, Any]) -> str:
    if found != step:
        return "the newest true checkpoint is that of step {}, not {}".format(found, step)
    if not told["files_true"]:
        return "the files of step {} are not those that were saved".format(step)
    return "the state restored is not that of step {}, when it was saved".format(step)
