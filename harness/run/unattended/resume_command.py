"""The command that goes on with a run where nobody sits beside it."""

from __future__ import annotations

import sys

from harness.run import trust
from harness.store.layout import RunPaths


def resume_command(paths: RunPaths, *words: str) -> tuple[str, ...]:
    """Give the command; a node may have another HOME, where nothing says the run is one's own.

    Of a run that is only planned, what says so is not known yet.
    """
    digests = trust.for_jobs(paths) if paths.files.exists(paths.run) else ()
    own = [word for digest in digests for word in ("--own", digest)]
    python = (sys.executable, "-P", "-m", "harness.cli")
    return (*python, "resume", str(paths.root), *words, *own)
