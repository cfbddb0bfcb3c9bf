"""This file says what the comparison needs to know of JAX."""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import jax

DUMPED = Path(tempfile.mkdtemp(prefix="bakeoff-hlo-"))
OPTIMISED = "*jit_*after_optimizations.txt"
# %name = f32[4,55,55,64]{3,2,1,0} convolution(...)
DEFINED = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = (\S+|\(.*?\)) ([a-z][\w-]*)\(", re.MULTILINE)
LAYOUT = re.compile(r"\{[^}]*\}")
NO_WORK = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast"}
EXPLAINED = ()


def begin():
    """Nothing is to be set before JAX is asked."""


def wait(result):
    jax.block_until_ready(result)


def operations(make):
    """Count the instructions of the step as XLA optimised it, by kind and shape."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMPED} --xla_dump_hlo_as_text"
    before = set(DUMPED.glob(OPTIMISED))
    step, _ = make()
    wait(step())
    largest = max(set(DUMPED.glob(OPTIMISED)) - before, key=lambda path: path.stat().st_size)
    return Counter(
        "{} {}".format(kind, LAYOUT.sub("", shape))
        for shape, kind in DEFINED.findall(largest.read_text())
        if kind not in NO_WORK
    )
