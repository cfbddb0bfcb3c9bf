"""Hold the lines of a session to saying each thing once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.session_progress import Lines
from harness.run.progress import Progress
from tests.outcomes import ended

TRIAL = Path("/runs/mine/cells/abc/trial-1")


@pytest.mark.parametrize(
    ("reason", "log"),
    [
        (f"Rank 0 failed: boom. Log: {TRIAL}/rank.0.err", f"{TRIAL}/rank.0.err"),
        ("Rank 0 ran out of memory.", str(TRIAL)),
    ],
)
def test_a_failure_names_one_log(capsys: pytest.CaptureFixture[str], reason: str, log: str) -> None:
    progress = Progress(Path("/runs/mine"), 1, 2, 1, 2, "torch", "trial-1", None, None, "", None)
    Lines().trial_ended(progress, ended("failed", reason=reason))
    said = capsys.readouterr().err
    assert said.count("Log: ") == 1
    assert f"Log: {log}\n" in said
