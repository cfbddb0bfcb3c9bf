"""The event format: what a worker says, one JSON object a line, one file a rank.

Times are nanoseconds of the worker's monotonic clock; the anchor ties that clock to the wall. A
number may be NaN or Infinity, as a loss may.

    anchor     version, rank, local_rank, size, host, pid, wall_ns, mono_ns      always first
    phase      name, t            open, build, warm-up, measure, prove, examine, close; of a trial
                                  that takes turns also wait, settle, disturbed;
                                  lasts until the next phase
    versions   versions           library -> version
    identity   parameters, macs, shapes, digest, lowered      what was asserted before timing;
               lowered: the parameters that the adapter itself counts, null if it cannot
    units      units              work per step of this rank, for example {"images": 16}
    window     phase, first, steps, start, end      steps `first` .. `first + steps - 1`;
               clock: "external" where the times are a program's own (external_loop), else absent;
               waited: nanoseconds of it spent waiting for input, where there is any;
               turn: the number of the turn that it is a part of, where the trial takes turns
    turn       number, round, attempt, start, end      after all that was seen in it; disturbed:
               why it does not count, "" if it does; foreign_cores: what others used meanwhile;
               steps, work_s: what was measured in it, by the slowest rank's clock; settled_steps,
               settled_s: steps and seconds of its settling, from the third window on; they never
               count
    epoch      phase, first, steps, number      one pass over a data set's files, audited: samples,
               bytes, digest, order, left_out; cache (as ``input/cold.py`` calls it), cold_fraction,
               witness, resident_before, read_bytes; given_bytes: what storage gave the whole
               node; calls, call_bytes, cpu_s; cpus: the rank's share of them;
               compared: of how many samples the bytes were held to their imprints
               (``input/epochs.py``)
    checkpoint phase, step, start, end      training stood still for the one after `step` steps;
               saver, bytes       what wrote it; of the state in memory
    checkpoint-state   step, state, t      saved: complete and durable on its first tier;
               draining: its copy to where it stays began; durable: complete and durable there
    restored   step, start, end, bytes      the newest one, read back where it stays; bytes of its
               files; files_true, state_true, cache, cold_fraction (``checkpoints/timed.py``)
    values     step, values       loss and the like, read outside the clock
    device-steps   last, seconds  the device's own time of each step up to `last`, where it tells
    facts      facts              peak_rss_bytes and cpu_s of this process, and the variables that
               steer libraries as it had them (RUN: its run's directory); by the adapter's word
               peak_device_bytes, threads, graph breaks
    attribution  traced_by, step_s      of the untimed job that divides steps among layers: what
               traced them, and how long each took while it was traced; untraced_s: how long steps
               between them, or before and after, took that nothing traced
    part       site, phase        one layer's part of these steps, "" for none, in one phase:
               forward, backward, loss, update, layout copy, plain copy, host gaps, or other for
               what carries no mark; shares: of each traced step, all parts' together are 1;
               operations: name, type, shapes, times a step and share of the part of those that
               took longest; more: how many further kinds
    ceiling    kernel, unit, work      of the untimed job that measures what a rank can do at most:
               windows from here to the next ceiling step this kernel, whose step does so much work;
               null, with why, where the framework has no such kernel; cache_bytes: the last-level
               caches of the rank's CPUs, null where unknown; a layer alone is a kernel of
               unit passes, called by what decides how long it takes
    failed     kind, message, trace      kind: unsupported, out-of-memory, error, or refused:
               what was timed is not what it is called
    finished   t                  last line of a complete file
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, Optional, TextIO

from harness.worker.place import Place

VERSION = 1  # 1: first


class Events:
    """Append events to one rank's file; nothing reaches it before ``flush``."""

    def __init__(self, path: str, place: Place) -> None:
        self.path = path
        self._file: Optional[TextIO] = open(path, "w", encoding="utf-8")
        self._pending: List[str] = []
        self._held: Optional[List[Dict[str, Any]]] = None
        self.say(
            "anchor",
            version=VERSION,
            rank=place.rank,
            local_rank=place.local_rank,
            size=place.size,
            host=place.host,
            pid=os.getpid(),
            wall_ns=time.time_ns(),
            mono_ns=time.monotonic_ns(),
        )
        self.flush()

    def say(self, event: str, **fields: Any) -> None:
        """Remember one event; it reaches the file at the next flush."""
        whole = {"event": event, **fields}
        if self._held is None:
            self._pending.append(json.dumps(whole, separators=(",", ":")))
        else:
            self._held.append(whole)

    def hold(self) -> None:
        """Keep what is said from now on back, until it is known how it counts."""
        self._held = []

    def release(self, phase: str) -> None:
        """Let what was kept back go, with what was said of the measured phase said of ``phase``."""
        held, self._held = self._held or [], None
        for event in held:
            name = "name" if event["event"] == "phase" else "phase"
            self.say(**{**event, name: phase} if event.get(name) == "measure" else event)

    def flush(self) -> None:
        """Hand what was said to the operating system."""
        if self._pending and self._file is not None:
            self._file.write("\n".join(self._pending) + "\n")
            self._file.flush()
            self._pending.clear()

    def close(self) -> None:
        """Flush to the disk and close; what a rank that fails in a turn kept back goes with it."""
        if self._file is not None:
            self.release("measure")
            self.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
