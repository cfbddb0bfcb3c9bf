"""Read torch's errors: out of memory, cannot be done here, or a fault to show whole."""

from __future__ import annotations

import torch

from harness.worker.contracts import OutOfMemory, Unsupported

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory")
UNSUPPORTED = {
    "does not have a deterministic implementation": "use deterministic = false",
    "InvalidCxxCompiler": "torch.compile on a CPU needs a C++ compiler: install g++",
    "Python.h": "torch.compile on a CPU needs Python's headers",
}


def read(error: RuntimeError) -> Exception:
    """Give the exception that says what this one means."""
    words = str(error)
    if isinstance(error, getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)):
        return OutOfMemory(words)
    if any(sign in words for sign in OUT_OF_MEMORY):
        return OutOfMemory(words)
    for sign, cure in UNSUPPORTED.items():
        if sign in words:
            return Unsupported("{}; {}".format(words.splitlines()[0], cure))
    return error
