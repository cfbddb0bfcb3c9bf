"""Complete the environment that ranks begin with, and find them a place to meet."""

from __future__ import annotations

import ctypes.util
from collections.abc import Mapping
from pathlib import Path

_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "CACHEDB": "tinygrad/cache.db",
}


def environment(
    interpreter: Mapping[str, str], cache: Path, allocator: str | None
) -> dict[str, str]:
    """Make every compile cache private, so that no earlier run decides a first step.

    An allocator is preloaded by its library's name or path; the worker asserts that it is there,
    because the loader only warns of what it cannot find.
    """
    caches = {name: f"{cache}/{folder}" for name, folder in _CACHES.items()}
    if allocator is None:
        return {**interpreter, **caches}
    library = allocator if "/" in allocator else ctypes.util.find_library(allocator)
    preload = " ".join(
        filter(None, (library or f"lib{allocator}.so", interpreter.get("LD_PRELOAD")))
    )
    return {**interpreter, **caches, "LD_PRELOAD": preload}
