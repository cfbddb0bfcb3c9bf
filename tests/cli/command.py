"""Run the command as a user does: a process, a folder, what it printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def bakeoff(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
