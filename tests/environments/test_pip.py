from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.environments.package_index.pip import Installer, read_report
from harness.errors import Unavailable
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
        Installer((sys.executable, str(program)), Path(sys.executable)).run(on_line=stop)
    with ends[0] as end:
        wait_until_nobody_reads(end)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("[]", "not an object"),
        (
            '{"install": [{"metadata": {"name": "torch"}}]}',
            "install[0].metadata.version is missing",
        ),
    ],
)
def test_a_report_of_pip_that_cannot_be_read_is_told(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(Unavailable) as refused:
        read_report(tmp_path / "report.json")
    assert str(refused.value).startswith("pip's report cannot be read: ")
    assert why in str(refused.value)
