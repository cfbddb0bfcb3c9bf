"""This file is the verb `resume`: go on with a run that was interrupted."""

from __future__ import annotations

import click

from harness.cli import completion


@click.command("resume")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@click.option("--mix", is_flag=True, help="Go on although code, environment or platform changed.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(run: str, *, mix: bool, as_json: bool) -> int:
    """Go on with a run that was interrupted.

    RUN is a run directory, or a name under runs/. Nothing that finished is repeated.
    """
    from harness.cli.live import watching
    from harness.cli.run import conclude
    from harness.errors import UsageError
    from harness.run import session
    from harness.run.preparation import read_plan
    from harness.store.believe import doubt
    from harness.store.layout import RunPaths
    from reports.source import run_directories

    directories = run_directories([run])
    if len(directories) > 1:
        names = ", ".join(directory.name for directory in directories)
        raise UsageError(f"{run} holds several runs; name one of them: {names}.")
    with watching() as observer:
        result = session.resume(directories[0], mix=mix, observer=observer, rejects=doubt)
    return conclude(result, read_plan(RunPaths(result.run)), as_json=as_json)
