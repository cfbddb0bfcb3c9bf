"""An adapter that misbehaves as its options say; workers load it from a payload."""

from __future__ import annotations

import sys
import time

from harness.worker.adapters.null import NullActivity, NullAdapter
from harness.worker.contracts import OutOfMemory, Unsupported
from harness.worker.facts.multiplications import Count


class UnrulyActivity(NullActivity):
    def __init__(self, units, options):
        super().__init__(units)
        self.options = options
        self.steps = 0

    def parameters(self):
        return self.options.get("parameters")

    def values(self):
        return {"loss": float("nan")}

    def step(self):
        self.steps += 1
        if self.steps == 5:
            misbehave(self.options.get("in_step"))


class ExaminedActivity(UnrulyActivity):
    def load(self, state):
        pass

    def give(self, given, target):
        pass

    def state(self):
        return iter(())

    def multiplications(self):
        return Count(time.monotonic_ns(), "the time")


class UnrulyAdapter(NullAdapter):
    def __init__(self, job):
        super().__init__(is_saving=False)
        self.job = job

    def activity(self, workload, feed, options):
        misbehave(options.get("in_build"))
        make = ExaminedActivity if options.get("is_examined") else UnrulyActivity
        units = super().activity(workload, feed, options).units
        times = options.get("times", 1)
        return make({unit: times * work for unit, work in units.items()}, options)

    def facts(self):
        return {"peak_device_bytes": 12, "told": [self.job.purpose, *sorted(self.job.paths)]}

    def probe(self, workload, feed, options):
        return {"probed": workload.name}


def misbehave(how):
    if how == "unsupported":
        raise Unsupported("there is no LRN here")
    if how == "out-of-memory":
        raise OutOfMemory("tried to allocate 20 GiB")
    if how == "memory-error":
        raise MemoryError
    if how == "raise":
        raise RuntimeError("the kernel is not launched")
    if how == "exit":
        sys.exit(0)


def open(job, place):  # noqa: A001 - the contract's name
    return UnrulyAdapter(job)
