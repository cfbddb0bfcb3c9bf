"""``bakeoff doctor``: what is missing here, and what would spoil numbers."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.output import Part, Styled, Table, emit
from harness.units import counted, per_cent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.doctor.finding import DoctorFinding
    from harness.doctor.observer_cost import ObserverStudy
    from harness.doctor.report import Report


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
@click.option(
    "--platform",
    default="local",
    show_default=True,
    shell_complete=completion.platforms,
    help="The machine whose frameworks are looked at, and that --sweep tries.",
)
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
        from harness.cli.verbs.doctor_sweep import sweep as try_settings

        return try_settings(platform)
    report = examine(platform)
    facts = {"sound": report.is_sound, **vars(report)}
    emit(facts, lambda: _in_words(report), as_json=as_json)
    return 0 if report.is_sound else 1


def _observer(pairs: int | None, *, more: bool, as_json: bool) -> int:
    """Run the on/off study, keep its result, and say it."""
    from harness.doctor import observer_cost

    before = observer_cost.kept() if more else None
    study = observer_cost.carry_out(pairs or observer_cost.PAIRS, before=before)
    observer_cost.keep(study)
    facts = {**vars(study), "more_pairs": study.more_pairs}
    emit(facts, lambda: _cost(study), as_json=as_json)
    return 0


def _cost(study: ObserverStudy) -> list[str]:
    share = study.cpu_share
    own = "" if share is None else f" It used {per_cent(share, 2)} of one core itself."
    lost, low, high = study.per_cpu
    lines = [
        (
            f"Observing slows a load on every core down by {per_cent(study.slow_down, 2)} "
            f"(95 % interval {per_cent(study.low, 2)} to {per_cent(study.high, 2)}, "
            f"{study.pairs} pairs of {study.slice_s:g} s).{own}"
        ),
        (
            f"Of a second of CPU time {per_cent(lost, 2)} was lost to it "
            f"({per_cent(low, 2)} to {per_cent(high, 2)})."
        ),
    ]
    if study.more_pairs is not None:
        lines.append(
            f"The interval is {100 * (study.high - study.low):.1f} points wide, too wide to answer "
            "with. On a quieter machine, or: bakeoff doctor --observer --more "
            f"--pairs {study.more_pairs}"
        )
    return lines


def _in_words(report: Report) -> list[Part]:
    every = (*report.installation, *report.machine)
    faults = sum(one.level == "fault" for one in every)
    warnings = sum(one.level == "warning" for one in every)
    return [
        Styled("Installation", bold=True),
        findings_table(report.installation),
        Styled("Machine", bold=True),
        findings_table(report.machine),
        f"{counted(faults, 'fault')}, {counted(warnings, 'warning')}.",
    ]


def findings_table(findings: Sequence[DoctorFinding]) -> Table:
    """Lay findings out, each wrapped beside its name, with what would repair it below."""
    width = max(len(one.check) for one in findings)
    room = max(40, shutil.get_terminal_size((100, 24)).columns - width - 5)
    rows: list[tuple[Styled | str, str, str]] = []
    for one in findings:
        first, *more = textwrap.wrap(one.seen, room) or [""]
        remedy = [] if one.level == "fine" else textwrap.wrap(one.remedy, room - 2)
        more += [("→ " if number == 0 else "  ") + line for number, line in enumerate(remedy)]
        rows.append((Styled(*_SIGNS[one.level]), one.check, first))
        rows += [("", "", line) for line in more]
    return Table(rows)
