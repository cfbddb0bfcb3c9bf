"""This file is ``bakeoff doctor``: what is missing here, and what would spoil numbers."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.run.finding import Finding

_SIGNS = {
    "fine": ("✓", "green"),
    "warning": ("!", "yellow"),
    "fault": ("✗", "red"),
    "unknown": ("·", "bright_black"),
}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> int:
    """Say what is missing here and what would spoil numbers.

    ✓ fine, ! spoils numbers or narrows what can be run, ✗ must be repaired, · not known or not
    here. The exit code is 1 if something must be repaired.
    """
    from harness.run.doctor import examine

    report = examine()
    if as_json:
        facts = {"sound": report.is_sound, **asdict(report)}
        click.echo(json.dumps(facts, indent=1))
        return 0 if report.is_sound else 1
    _print("Installation", report.installation)
    _print("Machine", report.machine)
    every = (*report.installation, *report.machine)
    faults = sum(one.level == "fault" for one in every)
    warnings = sum(one.level == "warning" for one in every)
    click.echo(f"{_count(faults, 'fault')}, {_count(warnings, 'warning')}.")
    return 0 if report.is_sound else 1


def _print(title: str, findings: tuple[Finding, ...]) -> None:
    click.secho(title, bold=True)
    width = max(len(one.check) for one in findings)
    room = max(40, shutil.get_terminal_size((100, 24)).columns - width - 5)
    for one in findings:
        sign, colour = _SIGNS[one.level]
        seen = textwrap.wrap(one.seen, room) or [""]
        click.echo(f"{click.style(sign, fg=colour)} {one.check:<{width}}  {seen[0]}")
        remedy = [] if one.level == "fine" else textwrap.wrap(one.remedy, room - 2)
        for line in (*seen[1:], *(("→ " if n == 0 else "  ") + x for n, x in enumerate(remedy))):
            click.echo(f"  {'':<{width}}  {line}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
