"""This file makes the environment that ranks begin with: the user's, without what is the host's."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

_OURS = ("BAKEOFF_", "PYTHON")
_OUR_VENV = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "__PYVENV_LAUNCHER__")

_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}


def environment(
    own: Mapping[str, str], interpreter: Mapping[str, str], cache: Path
) -> dict[str, str]:
    """Drop what belongs to the host's Python, and make every compile cache private."""
    kept = {
        name: value
        for name, value in own.items()
        if not name.startswith(_OURS) and name not in _OUR_VENV
    }
    private = {name: str(cache / folder) for name, folder in _CACHES.items()}
    return {**kept, **private, **interpreter}


def free_port() -> int:
    """Find a port on which ranks of this machine can meet."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
