"""Keep what kernels reached at most on this machine, so that later runs need not measure it again.

One small file for each machine and platform, under ``STATE/ceilings/``: of each framework's
environment, device, precision, number of threads and kernel the highest that any run measured, and
of layers alone in the same way.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from harness import user_folders
from harness.environments import cache
from harness.machine import share
from harness.store.files import write_json
from harness.store.json_text import parse
from harness.store.record_readers.ceilings import VERSION, Ceiling, usable

_MOST_BYTES = 1 << 22
_MOST = 5000


def known(platform: str) -> tuple[Ceiling, ...]:
    """Give what is kept of this machine; nothing where what is kept cannot be read."""
    try:
        return usable(parse(_file(platform).read_bytes()[:_MOST_BYTES]))
    except (OSError, ValueError):  # they are measured once more then
        return ()


def learn(platform: str, found: Iterable[Ceiling]) -> None:
    """Keep the highest of each kind; where nothing can be kept, nothing is."""
    best: dict[object, Ceiling] = {}
    for one in (*known(platform), *found):
        of = (one.under, one.reached.kernel)
        if of not in best or one.reached.per_s > best[of].reached.per_s:
            best[of] = one
    newest = sorted(best.values(), key=lambda one: one.measured_wall_ns)[-_MOST:]
    file = _file(platform)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(file, {"version": VERSION, "ceilings": [asdict(one) for one in newest]})


def _file(platform: str) -> Path:
    ours = len(os.sched_getaffinity(0))
    here = (socket.gethostname(), share.cpu(), os.cpu_count(), ours, share.cpu_quota(), platform)
    return user_folders.state_home() / "ceilings" / f"{cache.digest(list(here))}.json"
