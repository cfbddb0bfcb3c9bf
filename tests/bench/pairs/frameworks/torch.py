"""This file says what the comparison needs to know of torch."""

import os
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

EXPLAINED = (
    (r"plain aten::add_ \[\[\], \[\], \[\]\]", "batch norms count batches, which nobody reads"),
)


def begin():
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def wait(_):
    """Return at once: a step on a CPU is done when it returns."""


def operations(make):
    """Count the operators of one step by name and shapes, forward and backward."""
    step, _ = make()
    step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    return Counter(
        event.name + " " + str(event.input_shapes)
        for event in profiler.events()
        if event.name.startswith("aten::")
    )
