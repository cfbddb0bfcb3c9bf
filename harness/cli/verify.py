"""This file is the verb `verify`: prove that the cells of a study compute the same thing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from harness.cli.selection import Selection, study_options


@click.command("verify")
@study_options
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(*, as_json: bool, **typed: Any) -> int:
    """Prove that the cells of a study compute the same thing.

    Every network is compared in float64 with torch on the CPU, and layer by layer as it is timed.
    What was found is kept: a second time costs nothing. Ends with 1 if a cell differs.
    """
    from harness.cli.listener import listening
    from harness.run.examined import DIFFERS
    from harness.run.gate import ensure
    from harness.run.proving import lines

    _, plan = Selection(**typed).plan()
    with listening() as listener:
        found = ensure(plan, watch=listener.doing)
    if as_json:
        cells = {cell.key: {"label": cell.label, **asdict(found[cell.key])} for cell in plan.cells}
        click.echo(json.dumps({"cells": cells}, indent=1, ensure_ascii=False))
    else:
        click.echo("\n".join(lines(plan, found, found)))
    return 1 if any(one.state == DIFFERS for one in found.values()) else 0
