"""The verb `preflight`: everything that would stop a study, at once and before the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import Part, emit
from harness.cli.study_options import Selection, study_options
from harness.cli.verbs.doctor import findings_table
from harness.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.doctor.finding import DoctorFinding
    from harness.plan.plan import Plan


@click.command("preflight")
@study_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(*, as_json: bool, **typed: Any) -> int:
    """Look for everything that would stop a study, before it waits in a queue.

    STUDY is a .toml file, or the name of one under studies/. Environments are started, modules
    loaded, containers entered; data sets, room, and what the queue would take are looked at.
    Nothing is made and nothing queued. The exit code is 1 if something would stop it.
    """
    from harness.run.preflight.preflight import examine

    _, plan = Selection(**typed).plan()
    found = examine(plan)
    faults = sum(one.level == "fault" for one in found)
    facts = {"ready": faults == 0, "findings": found}
    emit(facts, lambda: _in_words(plan, found, faults), as_json=as_json)
    return 0 if faults == 0 else 1


def _in_words(plan: Plan, found: Sequence[DoctorFinding], faults: int) -> list[Part]:
    if faults:
        end = f"{counted(faults, 'fault')}; nothing was queued."
    else:
        end = f"Nothing stops {plan.study.name} on {plan.platform.name}."
    return [findings_table(found), end]
