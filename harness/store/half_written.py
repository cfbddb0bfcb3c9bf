"""Remove what a killed process left half written: ``.NAME.HEX.new`` beside a file called NAME."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.errors import DamagedFile
from harness.store.layout import RunPaths

_OLD_NS = 3600 * 10**9
"""By then whoever writes a page, or a table of samples, has ended."""


def remove(paths: RunPaths, trials: Iterable[Path]) -> None:
    """Remove half-written files; call it with the run locked.

    Pages and tables of samples are written without the lock: of these only old ones are left over.
    """
    files, root = paths.files, paths.root
    pages = [root / name for name in files.folders(root) if name.endswith("-data")]
    cells = [paths.cells, *(paths.cells / key for key in files.folders(paths.cells))]
    others = [paths.environment("any").parent, paths.gate, paths.job_script(1).parent]
    for folder in (root, *pages, *others, *cells, *trials):
        with suppress(FileNotFoundError, DamagedFile):
            for name, wanted in files.unfinished(folder).items():
                is_own = _is_of_session(paths, folder, wanted) and folder not in pages
                if is_own or files.changed_ns(folder / name) < time.time_ns() - _OLD_NS:
                    files.remove(folder / name)


def _is_of_session(paths: RunPaths, folder: Path, name: str) -> bool:
    """Tell what only the holder of a run's lock writes."""
    if folder != paths.root:
        return not name.endswith(".parquet")
    own = (paths.run, paths.study, paths.plan, paths.provenance, paths.jobs)
    return name in (one.name for one in own) or name.startswith(paths.payload.name)
