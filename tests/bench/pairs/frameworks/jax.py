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
# The rest is light work, which XLA fuses as it likes.
HEAVY = {
    "convolution",
    "custom-call",
    "dot",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
    "while",
}
EXPLAINED = (
    (r"\w+ scatter f32\[4,11[34],", "a pad stops at the last row that a window reads"),
    (r"plain while ", "the script splits its random key in every step, dropout or not"),
    (r"ours while .*u32\[2\]", "a key is split at each dropout, by the script once for both"),
)


def begin():
    """Nothing is to be set before JAX is asked."""


def wait(result):
    jax.block_until_ready(result)


def operations(make):
    """Count the heavy instructions of the step as XLA optimised it, by kind and shape."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMPED} --xla_dump_hlo_as_text"
    jax.config.update("jax_enable_compilation_cache", False)  # what it holds is not dumped
    before = set(DUMPED.glob(OPTIMISED))
    step, _ = make()
    wait(step())
    last = max(set(DUMPED.glob(OPTIMISED)) - before)  # their names are numbered
    return Counter(
        "{} {}".format(kind, LAYOUT.sub("", shape))
        for shape, kind in DEFINED.findall(last.read_text())
        if kind in HEAVY
    )
