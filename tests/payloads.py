"""Copy the payload for a worker, with byte code: most of what a short worker did was to compile it.

Each file's byte code is held to its source by a hash when it is imported, so what a test changes in
a copy is compiled anew; so is everything in a Python of another version.
"""

from __future__ import annotations

import atexit
import compileall
import shutil
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode
from tempfile import mkdtemp

from harness.ranks import payload


def lay_out(source: Path) -> None:
    """Copy the payload to a folder that is not there yet."""
    shutil.copytree(_compiled(), source, copy_function=shutil.copyfile)


@cache
def _compiled() -> Path:
    place = Path(mkdtemp(prefix="bakeoff-payload-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    payload.gather().copy(place / "payload")
    held = PycInvalidationMode.CHECKED_HASH
    assert compileall.compile_dir(place / "payload", quiet=2, invalidation_mode=held)
    return place / "payload"
