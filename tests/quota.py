"""Let processes use so many cores only, as a control group does."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path

from tests.needs import missing


class Quota:
    """A control group that may use a number of cores."""

    def __init__(self) -> None:
        old = Path("/sys/fs/cgroup/cpu")
        self.folder = (old if old.is_dir() else old.parent) / f"bakeoff-quota-{uuid.uuid4().hex}"
        self._file, self._form = (
            ("cpu.cfs_quota_us", "{}") if old.is_dir() else ("cpu.max", "{} 100000")
        )
        try:
            self.folder.mkdir()
            self.allow(2.0)
        except OSError as problem:
            missing(f"the right to limit CPU time ({problem})", "run as root with control groups")

    def allow(self, cores: float) -> None:
        (self.folder / self._file).write_text(self._form.format(int(cores * 100_000)))

    def end(self) -> None:
        """Let go of the processes that are left in it, and remove it."""
        for process in (self.folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):  # it ended meanwhile
                (self.folder.parent / "cgroup.procs").write_text(process)
        self.folder.rmdir()

    def take(self, *processes: int) -> None:
        """Put processes into it; what they start later is in it too."""
        for process in processes:
            (self.folder / "cgroup.procs").write_text(str(process))
