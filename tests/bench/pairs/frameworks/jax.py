"""Say what the comparison needs to know of JAX."""

import os
import tempfile
from pathlib import Path

import jax

from tests.bench.pairs import hlo

DUMPED = Path(tempfile.mkdtemp(prefix="bakeoff-hlo-"))
OPTIMISED = "*jit_*after_optimizations.txt"
SUMS = "biases are sums in bf16, by windows; ours adds biases and their gradients in float32"
EXPLAINED = (
    (r"plain reduce-window f32\[1,2,2,64\]", SUMS),
    (r"\w+ scatter f32\[4,11[34],", "a pad stops at the last row that a window reads"),
    (r"plain while ", "the script splits its random key in every step, dropout or not"),
    (r"ours while .*u32\[2\]", "a key is split at each dropout, by the script once for both"),
)
EXPLAINED_OF_TEXTS = (
    (r"plain reduce-window f32\[1,2,(64|192|256)\]", SUMS),
    (r"\w+ reduce-window [fs]32\[1,\d+(,1)?\]", "ours counts the positions that are not masked"),
)


def begin():
    """Nothing is to be set before JAX is asked."""


def wait(result):
    jax.block_until_ready(result)


def operations(make, _factors):
    """Count the heavy instructions of the step as XLA optimised it, by kind and shape."""
    return hlo.counted(optimised(make))


def dump():
    """Let XLA write down what it compiles; it has to know before JAX starts its devices."""
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMPED} --xla_dump_hlo_as_text"
    jax.config.update("jax_enable_compilation_cache", False)  # what it holds is not dumped


def optimised(make):
    """Give the text of the step as XLA optimised it."""
    dump()
    before = set(DUMPED.glob(OPTIMISED))
    step, _ = make()
    wait(step())
    last = max(set(DUMPED.glob(OPTIMISED)) - before)  # their names are numbered
    return last.read_text()
