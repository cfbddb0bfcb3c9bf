"""The verb `verify`: hold the networks of a study's cells to one reference.

Without a study, it is every network in every framework that is ready here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.output import emit, note
from harness.cli.study_options import Selection, narrowing_options

if TYPE_CHECKING:
    from harness.plan.plan import Plan


@click.command("verify")
@click.argument("study", metavar="[STUDY]", required=False, shell_complete=completion.studies)
@narrowing_options
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(*, as_json: bool, **typed: Any) -> int:
    """Hold the networks of a study's cells to one reference.

    Without STUDY: every network in every framework that is ready here, at its defaults, which takes
    an hour or more the first time; narrow it with --only workload=resnet50 or --only framework=jax.

    Every network is compared in float64 with a reference, and layer by layer as it is timed. What
    was found is kept: a second time costs nothing. Ends with 1 if a cell differs, or if its
    examination failed.
    """
    from harness.cli.build_progress import listening
    from harness.gate.gate import ensure
    from harness.plan.gate_duration import gate_s
    from harness.run.gate_first import lines
    from harness.store.records import DIFFERS, EXAMINATION_FAILED
    from harness.units import counted, duration

    plan = _plan(typed)
    cells, at_most = counted(len(plan.cells), "cell"), duration(gate_s(plan))
    note(f"{cells}: at most about {at_most}; what was found before is kept, and costs nothing.")
    with listening() as listener:
        found = ensure(plan, watch=listener.doing)
    told = {cell.key: {"label": cell.label, **vars(found[cell.key])} for cell in plan.cells}
    emit({"cells": told}, lambda: lines(plan, found, found), as_json=as_json)
    return int(any(one.state in (DIFFERS, EXAMINATION_FAILED) for one in found.values()))


def _plan(typed: dict[str, Any]) -> Plan:
    """Make the plan of the study that was named, or of all that is ready here."""
    from harness.gate.everything_study import study_of_all
    from harness.platform.platform import load_platform

    if typed["study"] is not None:
        return Selection(**typed).plan()[1]
    everything = study_of_all(load_platform(typed["platform"] or "local"))
    return Selection(**{**typed, "study": everything}).plan()[1]
