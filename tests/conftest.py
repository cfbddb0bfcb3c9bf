"""This file accounts for the time tests take, by the stages of CI's budget."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

BUDGET = Path(__file__).parent.parent / ".ci" / "budget.toml"
STAGES = ("framework", "engine", "io", "browser")

_seconds: Counter[str] = Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    outcome = yield
    report = outcome.get_result()
    stage = next((name for name in STAGES if item.get_closest_marker(name)), "unit")
    report.user_properties.append(("stage", stage))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    stage = dict(report.user_properties).get("stage", "unit")
    _seconds[str(stage)] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    minutes = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    spent = [
        f"{stage} {seconds / 60:.1f} of {minutes[stage]} min"
        for stage, seconds in sorted(_seconds.items())
    ]
    terminalreporter.write_line("Test time by CI stage: " + ", ".join(spent))
