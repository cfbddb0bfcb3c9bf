"""A commented study to begin with, written for one machine from what is installed there."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_BLOCKS = 6


@dataclass(frozen=True)
class Here:
    """What a machine offers a first study."""

    machine: str
    frameworks: Sequence[str]
    """Those that train and are ready; the first is what the others are compared with."""
    buildable: Sequence[str]
    """Those that train and could be made ready."""
    has_gpu: bool
    networks: Sequence[str]
    """Those that could be trained here."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Those that are ready, but of which this study would have no cell, and why."""


def first_study(here: Here) -> str:
    """Write the study: a tiny network in each framework that is ready, in two precisions."""
    frameworks = list(here.frameworks or here.buildable[:1])
    build = f"bakeoff env create {frameworks[0]}"
    none_yet = "" if here.frameworks else f"  # none is built here yet: {build}"
    listed = ", ".join(f'"{name}"' for name in frameworks)
    device = "gpu" if here.has_gpu else "cpu"
    cannot = "".join(f"# Not {name}: {why}\n" for name, why in here.cannot.items())
    others = textwrap.fill(
        ", ".join(here.networks), 96, initial_indent="#   ", subsequent_indent="#   "
    )
    return f"""\
# A first study for {here.machine}.
#   bakeoff plan FILE     what would run, how long it takes, what is left out and why
#   bakeoff run FILE      run it; Ctrl-C is safe, and bakeoff resume goes on
title = "My first study"
question = "Which framework trains tinycnn fastest here, and does bf16 help?"

# Each list is crossed with all others. bakeoff list workloads says more of these networks:
{others}
[matrix]
workload = ["tinycnn"]
{cannot}framework = [{listed}]{none_yet}
precision = ["fp32", "bf16"]
batch = 16
device = "{device}"

# Cells to leave out, with the reason that the page gives:
# [[exclude]]
# framework = "{frameworks[-1]}"
# precision = "bf16"
# why = "not asked here"

[measure]
trials = {_BLOCKS}         # blocks; fewer than {_BLOCKS} cannot tell faster from slower
warmup = "5 steps"
until = "3 s"      # of a trial; longer where steps take long, for example "30 s"
timeout = "5 min"
# tolerate = ["contended"]  # count trials beside which others used the machine
# What every other cell is compared with, in each block; any cell may be it:
reference = {{ framework = "{frameworks[0]}", precision = "fp32" }}
"""
