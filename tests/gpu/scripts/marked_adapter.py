"""Any framework's adapter, with marks of the device's own around each window of the timed loop.

A job that names this module as its adapter is worked as every other one. MARKED_ADAPTER names the
module that does the work; to MARKED_FILE goes, for each window in turn:

    device_s   seconds between two CUDA events, recorded before the window's first step and after
               its last one; null where the framework's stream cannot be reached from outside
    left_s     seconds for which the device went on after sync() had returned, by
               cuCtxSynchronize: the driver waits for all work of the process, on every stream

and of two runs after the last window: ``control``, steps without sync(), where the device must be
seen to go on if the framework enqueues ahead; and ``plain``, as many steps without the loop. The
loop itself reads its clock as always and is not told.
"""

import ctypes
import importlib
import json
import os
import time
from pathlib import Path

STEPS = 30


class CudaEvents:
    """Two events on torch's current stream."""

    name = "CUDA events"

    def __init__(self):
        import torch

        self._start, self._end = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.begin, self.end = self._start.record, self._end.record

    def seconds(self):
        return self._start.elapsed_time(self._end) / 1e3


class HostClock:
    """The host's clock, for a rehearsal on a CPU, where torch's steps are done as they return."""

    name = "the host's clock"

    def begin(self):
        self._start = time.perf_counter()

    def end(self):
        self._end = time.perf_counter()

    def seconds(self):
        return self._end - self._start


class NoClock:
    """Nothing: XLA's streams cannot be reached from outside."""

    name = None

    def begin(self):
        pass

    end = begin

    def seconds(self):
        return None


class Driver:
    """CUDA's driver, asked to wait for the first device; says why where it cannot be asked."""

    def __init__(self):
        self.problem = None
        self._context = ctypes.c_void_p()
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            self.problem = "libcuda.so.1 is not here"
            return
        flags, is_active = ctypes.c_uint(), ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(is_active))
        if self.problem is None and not is_active.value:
            self.problem = "the framework does not compute in the device's primary context"
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0)

    def wait_s(self):
        """Wait until the device is idle; give the seconds, or None where nobody can be asked."""
        if self.problem is not None:
            return None
        start = time.perf_counter()
        self._call("cuCtxPushCurrent_v2", self._context)
        self._call("cuCtxSynchronize")
        self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return time.perf_counter() - start

    def _call(self, name, *arguments):
        code = 0 if self.problem is not None else getattr(self._cuda, name)(*arguments)
        if code:
            self.problem = f"{name} gives CUDA error {code}"


class MarkedActivity:
    """An activity whose windows are marked from outside."""

    def __init__(self, inner, clock):
        self.inner = inner
        self.units = inner.units
        self.agree = inner.agree
        self.parameters = inner.parameters
        self.clock = clock
        self.driver = Driver()  # after the framework began to use the device
        self.windows = []
        self._is_open = False

    def step(self):
        if not self._is_open:
            self._is_open = True
            self.clock.begin()
        self.inner.step()

    def sync(self):
        self.clock.end()
        self.inner.sync()
        self._is_open = False

    def values(self):
        """Read the marks of the window that just ended: the loop's clock does not run here."""
        left_s = self.driver.wait_s()
        self.windows.append({"device_s": self.clock.seconds(), "left_s": left_s})
        return self.inner.values()

    def without_sync(self):
        """Enqueue steps and ask the driver alone how long the device went on."""
        start = time.perf_counter()
        for _ in range(STEPS):
            self.inner.step()
        enqueued = time.perf_counter()
        left_s = self.driver.wait_s()
        self.inner.sync()
        return {"steps": STEPS, "enqueued_s": enqueued - start, "left_s": left_s}

    def plain(self):
        """Time steps without the loop: by events where there are any, else by the host's clock."""
        self.inner.sync()
        start = time.perf_counter()
        self.clock.begin()
        for _ in range(STEPS):
            self.inner.step()
        self.clock.end()
        self.inner.sync()
        seconds = time.perf_counter() - start
        self.driver.wait_s()
        device_s = self.clock.seconds()
        return {"steps": STEPS, "seconds": seconds if device_s is None else device_s}


class MarkedAdapter:
    """The adapter that works, and its one activity."""

    def __init__(self, inner, job):
        self._inner = inner
        self._job = job
        self._activity = None
        self.versions, self.facts = inner.versions, inner.facts

    def activity(self, workload, feed, options):
        if self._job.framework != "torch":
            clock = NoClock()
        else:
            clock = CudaEvents() if self._job.factors["device"] == "gpu" else HostClock()
        self._activity = MarkedActivity(self._inner.activity(workload, feed, options), clock)
        return self._activity

    def close(self):
        told = {
            "by": self._activity.clock.name,
            "windows": self._activity.windows,
            "control": self._activity.without_sync(),
            "plain": self._activity.plain(),
            "driver": self._activity.driver.problem,
        }
        Path(os.environ["MARKED_FILE"]).write_text(json.dumps(told), encoding="utf-8")
        self._inner.close()


def open(job, place):  # noqa: A001 the contract's name
    """Open the adapter that does the work."""
    module = importlib.import_module(os.environ["MARKED_ADAPTER"])
    return MarkedAdapter(module.open(job, place), job)
