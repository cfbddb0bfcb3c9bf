"""The verb `cancel`: take a run's jobs back from the queue, or end its session here."""

from __future__ import annotations

import click

from harness.cli import completion
from harness.cli.output import note


@click.command("cancel")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
def command(run: str) -> None:
    """Take a run's jobs back from the queue, or end the session that works on it here.

    What finished is kept; `bakeoff resume RUN --detach` goes on.
    """
    from harness.analysis.read import run_directory
    from harness.run.setup import read_plan
    from harness.run.unattended import detached, queue
    from harness.store.layout import RunPaths

    paths = RunPaths(run_directory(run))
    platform = read_plan(paths).platform
    if not queue.has_queue(platform):
        ended = detached.end(paths)
        note(f"Ending: {ended}." if ended else "Nobody is at work on this run.")
        return
    submitted = queue.require_own_jobs(paths, platform)
    states = queue.states(platform, submitted) if submitted else {}
    live = [one for one in submitted if one.job in states]
    if live:
        queue.cancel(platform, live)
    names = ", ".join(one.job for one in live)
    note(f"Cancelled: {names}." if live else "No job of this run is in the queue.")
