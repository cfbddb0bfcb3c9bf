"""Say what the comparison needs to know of tinygrad."""

import os
import re
from collections import Counter

from harness.worker.adapters.tinygrad import adapter

COLOUR = re.compile(r"\x1b\[\d+m")
EXPLAINED = (
    (r"ours E_4_4$", "the script leaves running statistics lazy, since nothing reads them"),
)


def begin():
    os.environ["DEV"] = "CPU"
    os.environ["NUM_CPU_THREADS"] = str(len(os.sched_getaffinity(0)))


def wait(_):
    from tinygrad import Device

    Device[Device.DEFAULT].synchronize()


def operations(make, _factors):
    """Count the kernels of a captured step; a kernel's name has its shape."""
    step, made = make()
    for _ in range(3):
        step()
    return Counter(COLOUR.sub("", name) for name in adapter.kernels(made.captured))
