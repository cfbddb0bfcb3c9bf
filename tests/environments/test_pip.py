from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.environments.package_index.pip import Installer
from tests.pipes import wait_until_nobody_reads

PIP = """
import subprocess, sys
print("building", flush=True)
subprocess.run([sys.executable, "-c", "open({!r}).read()"])
"""


def test_a_stopped_pip_takes_what_it_started_with_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = tmp_path / "pip.py"
    program.write_text(PIP.format(str(pipe)))
    ends = []

    def stop(line: str) -> None:
        ends.append(pipe.open("w"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Installer(program, Path(sys.executable)).run(on_line=stop)
    with ends[0] as end:
        wait_until_nobody_reads(end)
