"""Keep the ticks of some sources in one thread, each on its own drift-free tick.

Sources that may keep a reader waiting (a driver, a network file system) each have a thread, all
others share one; a slow GPU thus never delays the kernel's counters, and neither delays the agent,
which sleeps in its own thread. A tick that comes too late is dropped and counted, never repeated to
catch up.

While its trial stands still a thread reads nothing: the machine is then another trial's. What is
read every second or oftener is read once more where the trial stops, and where it goes on. To wake
a thread costs as much as a short reading: one that has read a moment ago hears of the stop by a
flag alone.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.collect.recorder import Recording
from harness.collect.sampler import Sampler
from harness.store.samples import samples_format

LATE = 0.1
"""A tick that begins later than this share of its period is counted as late."""
_LONGEST_END_S = 2.0
_GRID_NS = 100_000_000
SHORTEST_S = 0.1
"""One tick of the fastest source."""
_SLOWEST_AT_ENDS_NS = 1_000_000_000
"""What is read more seldom may be dear, and is not read where a trial stops and goes on."""
_STOP, _STAND_STILL, _GO_ON = "stop", "stand still", "go on"


@dataclass
class Counts:
    """How well the ticks were kept; the observer's own channels."""

    ticks: int = 0
    late: int = 0
    missed: int = 0


@dataclass
class Group:
    """One source at its rate."""

    source: str
    sampler: Sampler
    period_ns: int
    kept: dict[str, Sampler] | None = None
    """Where a sampler that lasts waits for the next trial."""
    number: int = -1
    first_ns: int = 0
    tick: int = 0
    failures: int = 0
    due_ns: int = 0
    """When the next reading is due."""
    read_ns: int = 0
    """When it was read last."""
    width: int = 0
    news: Callable[[], Sequence[Mapping[str, Any]]] | None = None
    """What the sampler has to tell beside numbers, if it ever has."""

    def begin(self, number: int, first_ns: int) -> None:
        """Take a place in the file, and a first moment."""
        self.number = number
        self.first_ns = self.due_ns = first_ns
        self.width = len(self.sampler.channels)
        self.news = getattr(self.sampler, "news", None)

    def end(self) -> None:
        """Close the sampler, unless the next trial reads on with it; never one that failed."""
        if self.kept is None or self.failures:
            self.sampler.close()
        else:
            self.kept[self.source] = self.sampler

    def resume(self, now: int) -> None:
        """Let the ticks go that came while nobody read: none of them was missed."""
        if self.due_ns <= now:
            self.pass_over((now - self.due_ns) // self.period_ns + 1)

    def read_between(self, now: int) -> None:
        """Let the next reading be one between two ticks, under the number of the first."""
        self.pass_over(max(0, now - self.first_ns) // self.period_ns - self.tick)

    def pass_over(self, ticks: int) -> None:
        """Go on to a later tick."""
        self.tick += ticks
        self.due_ns += ticks * self.period_ns


class Lane(threading.Thread):
    """One thread that keeps the ticks of some groups."""

    def __init__(
        self,
        name: str,
        recording: Recording,
        counts: Counts,
        opening: Callable[[], Iterable[Group]],
        *,
        turn: float = 0.0,
        shortest_s: float = SHORTEST_S,
    ) -> None:
        super().__init__(name=f"samples-{name}", daemon=True)
        self.source = name
        self._recording = recording
        self._counts = counts
        self._opening = opening
        self._turn = turn
        self._shortest_s = shortest_s
        # Waiting for its first word costs as little as for a lock, and less than for an Event.
        self._words: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stands_still = False
        self._groups: Sequence[Group] = ()
        """What is read, once it is open."""

    def run(self) -> None:
        """Record until asked to stop; an error of the recorder is reported with the trial."""
        try:
            self._record()
        except Exception as fault:
            self._recording.fault = f"{type(fault).__name__}: {fault}"
            raise

    def _record(self) -> None:
        """Open the sources, then read each whenever it is due.

        A trial that is over before the fastest source would tick a second time has nothing to tell,
        and is spared the opening of all sources.
        """
        opens_ns = time.monotonic_ns() + int(self._shortest_s * 1e9)
        while said := self._word(opens_ns):
            if said == _STOP:
                self._recording.note("too-short", seconds=self._shortest_s)
                return
        groups = list(self._opening())
        now = time.monotonic_ns()
        for group in groups:
            first_ns = self._first_ns(now, group.period_ns)
            channels = group.sampler.channels
            number = self._recording.group(group.source, group.period_ns, first_ns, channels)
            group.begin(number, first_ns)
        self._groups = groups
        if self._stands_still:
            self._read_between()
        word = ""
        while groups and word != _STOP:
            due_ns = None if self._stands_still else min([group.due_ns for group in groups])
            word = self._word(due_ns)
            if word == _GO_ON:
                for group in groups:
                    group.resume(time.monotonic_ns())
            if word in (_STAND_STILL, _GO_ON):
                self._read_between()
            elif not word and not self._stands_still:
                self._recording.append(self._read_due(groups))
        # The last state counts most of all: what grew since the last tick, and how it ended.
        self._recording.append(self._read(groups))
        for group in groups:
            group.end()

    def _word(self, until_ns: int | None) -> str:
        """Sleep until a moment, or for as long as it takes; give the word that came, or none."""
        wait_s = None if until_ns is None else max(0.0, (until_ns - time.monotonic_ns()) / 1e9)
        try:
            return self._words.get(timeout=wait_s)
        except queue.Empty:
            return ""

    def _read_between(self) -> None:
        """Read where a trial stops or goes on."""
        now = time.monotonic_ns()
        if some := self._not_read_lately(now):
            for group in some:
                group.read_between(now)
            self._recording.append(self._read(some))

    def _not_read_lately(self, now: int) -> list[Group]:
        """Give what is to be read where a trial stops or goes on: what was not a moment ago."""
        return [
            group
            for group in self._groups
            if group.period_ns <= _SLOWEST_AT_ENDS_NS and now - group.read_ns >= _GRID_NS
        ]

    def _first_ns(self, now: int, period_ns: int) -> int:
        """Begin on the recording's own grid; threads take turns, as they share an interpreter.

        The grid is fine: what is read every five seconds is first read at once all the same.
        """
        begun, grid_ns = self._recording.begun_ns, min(period_ns, _GRID_NS)
        ticks = -(-(now - begun) // grid_ns)
        return begun + ticks * grid_ns + int(self._turn * grid_ns)

    def _read_due(self, groups: Sequence[Group]) -> bytes:
        now = time.monotonic_ns()
        due = [group for group in groups if group.due_ns <= now]
        counts = self._counts
        for group in due:
            late_ns = now - group.due_ns
            counts.ticks += 1
            if late_ns > LATE * group.period_ns:
                counts.late += 1
                skipped = late_ns // group.period_ns
                counts.missed += skipped
                group.pass_over(skipped)
        return self._read(due)

    def _read(self, groups: Sequence[Group]) -> bytes:
        written = []
        before = time.monotonic_ns()
        for group in groups:
            raw = self._reading(group)
            after = time.monotonic_ns()
            written.append(samples_format.sample(group.number, group.tick, before, after, raw))
            group.pass_over(1)
            group.read_ns = after
            if group.news is not None:
                for facts in group.news():
                    self._recording.note(group.source, **facts)
            before = time.monotonic_ns()
        return b"".join(written)

    def _reading(self, group: Group) -> Sequence[int]:
        """Read one source; whatever goes wrong in it is a gap, noted the first time."""
        width = group.width
        try:
            raw = group.sampler.read()
            if len(raw) == width:
                return raw
            reason = f"{len(raw)} numbers for {width} channels"
        except Exception as problem:  # noqa: BLE001 a source may fail in any way, the others go on
            reason = f"{type(problem).__name__}: {problem}"
        group.failures += 1
        if group.failures == 1:
            self._recording.note("failing", source=group.source, reason=reason)
        return [samples_format.NOT_READ] * width

    def stop(self) -> None:
        """Ask the thread to read once more and end."""
        self._words.put(_STOP)

    def stand_still(self) -> None:
        """Ask the thread to read nothing until it is told to go on."""
        self._stands_still = True
        if self._not_read_lately(time.monotonic_ns()):
            self._words.put(_STAND_STILL)

    def go_on(self) -> None:
        """Ask the thread to go on with its ticks."""
        self._stands_still = False
        self._words.put(_GO_ON)

    def ended(self) -> bool:
        """Wait for the end; False if a source hangs, which is then left to itself."""
        self.join(_LONGEST_END_S)
        return not self.is_alive()
