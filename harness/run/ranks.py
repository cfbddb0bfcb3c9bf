"""This file completes the environment that ranks begin with, and finds them a place to meet."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}


def environment(interpreter: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Make every compile cache private, so that no earlier run decides a first step."""
    return {**interpreter, **{name: str(cache / folder) for name, folder in _CACHES.items()}}


def free_port() -> int:
    """Find a port on which ranks of this machine can meet."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
