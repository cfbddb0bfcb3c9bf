"""Complete the environment of ranks: private compile caches, no byte code, the allocator."""

from __future__ import annotations

import ctypes.util
from collections.abc import Mapping
from pathlib import Path

from harness.launch.container.command import DRIVER_CACHE

_DRIVER = {DRIVER_CACHE: "cuda"}
# A full disk cuts byte code short, and Python then imports the module no more. It would be written
# into the payload, and costs 0.04 s a rank to do without: packages have theirs from installation.
_NO_BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": "1"}


def environment(
    interpreter: Mapping[str, str], cache: Path, own: Mapping[str, str], allocator: str | None
) -> dict[str, str]:
    """Make every compile cache private, so that no earlier run decides a first step.

    ``own`` are the framework's, each a path below ``cache``. An allocator is preloaded by its
    library's name or path; the worker asserts that it is there, because the loader only warns of
    what it cannot find.
    """
    caches = {name: f"{cache}/{folder}" for name, folder in {**_DRIVER, **own}.items()}
    env = {**interpreter, **caches, **_NO_BYTE_CODE}
    if allocator is None:
        return env
    library = allocator if "/" in allocator else ctypes.util.find_library(allocator)
    preload = " ".join(
        filter(None, (library or f"lib{allocator}.so", interpreter.get("LD_PRELOAD")))
    )
    return {**env, "LD_PRELOAD": preload}
