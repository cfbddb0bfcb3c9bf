"""The verb `cancel`: take a run's jobs back from the queue."""

from __future__ import annotations

import click

from harness.cli import completion
from harness.cli.output import note


@click.command("cancel")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
def command(run: str) -> None:
    """Take a run's jobs back from the queue.

    What finished is kept; `bakeoff resume RUN --detach` goes on.
    """
    from harness.analysis.read import run_directory
    from harness.run import queue
    from harness.run.setup import read_plan
    from harness.store.layout import RunPaths

    paths = RunPaths(run_directory(run))
    platform = read_plan(paths).platform
    submitted = queue.require_own_jobs(paths, platform)
    states = queue.states(platform, submitted) if submitted else {}
    live = [one for one in submitted if one.job in states]
    if live:
        queue.cancel(platform, live)
    names = ", ".join(one.job for one in live)
    note(f"Cancelled: {names}." if live else "No job of this run is in the queue.")
