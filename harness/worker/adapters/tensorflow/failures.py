"""Read TensorFlow's errors: out of memory, impossible here, or a fault to show whole."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from harness.worker.contracts import OutOfMemory, Unsupported

LACKS_A_KERNEL = (
    "No OpKernel was registered",
    "Could not find device for node",
    "not compilable on",
    "unsupported operations",
    "is not supported on",
)


def read(error: Exception) -> Exception:
    """Give the exception that says what this one means."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return OutOfMemory(lines[0])
    for line in lines:
        if any(sign in line for sign in LACKS_A_KERNEL):
            return Unsupported("TensorFlow: " + line)
    return error
