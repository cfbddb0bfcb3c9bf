"""``bakeoff doctor``: what is missing here, and what would spoil numbers."""

from __future__ import annotations

import json
import shutil
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from harness.units import counted, per_cent

if TYPE_CHECKING:
    from harness.doctor.finding import Finding

_SIGNS = {
    "fine": ("✓", "green"),
    "warning": ("!", "yellow"),
    "fault": ("✗", "red"),
    "unknown": ("·", "bright_black"),
}


@click.command("doctor")
@click.option("--observer", is_flag=True, help="Measure what observing costs (about 2 minutes).")
@click.option("--pairs", type=click.IntRange(min=2), help="How often, with --observer.")
@click.option("--more", is_flag=True, help="Add to the last --observer on this machine.")
@click.option("--sweep", is_flag=True, help="Try threads, affinity and memory (minutes).")
@click.option("--platform", default="local", show_default=True, help="What --sweep tries.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(
    *, observer: bool, pairs: int | None, more: bool, sweep: bool, platform: str, as_json: bool
) -> int:
    """Say what is missing here and what would spoil numbers.

    ✓ fine, ! spoils numbers or narrows what can be run, ✗ must be repaired, · not known or not
    here. The exit code is 1 if something must be repaired.
    """
    from harness.doctor.report import examine

    if observer:
        return _observer(pairs, more=more, as_json=as_json)
    if sweep:
        from harness.cli.verbs.doctor_sweep import carry_out

        return carry_out(platform)
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
    click.echo(f"{counted(faults, 'fault')}, {counted(warnings, 'warning')}.")
    return 0 if report.is_sound else 1


def _observer(pairs: int | None, *, more: bool, as_json: bool) -> int:
    """Run the on/off study, keep its result, and say it."""
    from harness.doctor import observer_cost

    before = observer_cost.kept() if more else None
    study = observer_cost.carry_out(pairs or observer_cost.PAIRS, before=before)
    observer_cost.keep(study)
    if as_json:
        click.echo(json.dumps({**asdict(study), "more_pairs": study.more_pairs}, indent=1))
        return 0
    share = study.cpu_share
    own = "" if share is None else f" It used {per_cent(share, 2)} of one core itself."
    click.echo(
        f"Observing slows a load on every core down by {per_cent(study.slow_down, 2)} "
        f"(95 % interval {per_cent(study.low, 2)} to {per_cent(study.high, 2)}, "
        f"{study.pairs} pairs of "
        f"{study.slice_s:g} s).{own}"
    )
    lost, low, high = study.per_cpu
    click.echo(
        f"Of a second of CPU time {per_cent(lost, 2)} was lost to it "
        f"({per_cent(low, 2)} to {per_cent(high, 2)})."
    )
    if study.more_pairs is not None:
        click.echo(
            f"The interval is {100 * (study.high - study.low):.1f} points wide, too wide to answer "
            "with. On a quieter machine, or: bakeoff doctor --observer --more "
            f"--pairs {study.more_pairs}"
        )
    return 0


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
