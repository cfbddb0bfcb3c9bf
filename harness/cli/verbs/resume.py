"""The verb `resume`: go on with a run that was interrupted."""

from __future__ import annotations

import click

from harness.cli import completion
from harness.cli.output import note
from harness.cli.partner_options import refuse_without
from harness.cli.queue_options import (
    hand_over,
    queue_options,
)


@click.command("resume")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@click.option("--mix", is_flag=True, help="Go on although code, environment or platform changed.")
@click.option("--retry-failed", is_flag=True, help="Run failed trials, and cells given up, again.")
@click.option("--more", type=click.IntRange(1, 200), help="Add so many blocks to a finished run.")
@click.option("--json", "as_json", is_flag=True, help="Print the results, or the jobs, as JSON.")
@click.option(
    "--trust-plan", is_flag=True, help="Carry out what the plan of somebody else's run names."
)
@click.option("--trust-payload", is_flag=True, help="Run the code that came with the run.")
@click.option("--own", multiple=True, hidden=True)
@click.option("--allocation", type=int, hidden=True)
@queue_options
def command(
    run: str,
    *,
    mix: bool,
    retry_failed: bool,
    more: int | None,
    trust_plan: bool,
    trust_payload: bool,
    own: tuple[str, ...],
    as_json: bool,
    allocation: int | None,
    detach: bool,
    max_jobs: int | None,
    max_node_hours: float | None,
    spread: int | None,
) -> int:
    """Go on with a run that was interrupted, or with more blocks.

    RUN is a run directory, or a name under runs/. Nothing that finished is repeated.
    """
    from harness.analysis.read import run_directory
    from harness.cli.session_progress import watching
    from harness.cli.verbs.run import conclude
    from harness.errors import UsageError
    from harness.gate.gate import ensure
    from harness.plan.allocations import blocks_of
    from harness.ranks.nodes import TooFewNodes
    from harness.run import session
    from harness.run.further_blocks import add_blocks
    from harness.run.setup import read_plan
    from harness.run.trust import Trust
    from harness.run.unattended import queue
    from harness.store.layout import RunPaths
    from harness.store.run_directory.due import read_due
    from harness.verdicts.ended_trial import doubt

    paths = RunPaths(run_directory(run).resolve())
    refuse_without(
        "detach", detach, max_jobs=max_jobs, max_node_hours=max_node_hours, spread=spread
    )
    trust = Trust(payload=trust_payload, plan=trust_plan, digests=frozenset(own))
    if more is not None:
        add_blocks(paths.root, more, trust=trust, mix=None if detach else mix)
    if detach:
        plan = read_plan(paths)
        live = queue.states(plan.platform, queue.require_own_jobs(paths, plan.platform))
        if live:
            raise UsageError(
                f"{run} is in the queue already (job {', '.join(live)}); `bakeoff cancel {run}` "
                "takes it back."
            )
        session.prepare_jobs(paths.root, mix=mix, retry_failed=retry_failed, trust=trust)
        waiting = read_due(paths).left()
        if not waiting:
            raise UsageError(f"{run}: nothing is left to run.")
        hand_over(
            plan,
            waiting,
            lambda: paths.root,
            max_jobs=max_jobs,
            max_node_hours=max_node_hours,
            spread=spread,
            as_json=as_json,
        )
        return 0
    only, blocks = None, None
    if allocation is not None:
        job, plan = queue.job(paths, allocation), read_plan(paths)
        only, part = job.keys, queue.part(plan.platform, job)
        blocks = None if part is None else blocks_of(plan.order, part, job.parts)
    try:
        with watching() as observer:
            result = session.resume(
                paths.root,
                mix=mix,
                retry_failed=retry_failed,
                trust=trust,
                only=only,
                blocks=blocks,
                observer=observer,
                rejects=doubt,
                ensure=ensure,
            )
    except TooFewNodes as problem:  # nothing could be run at all
        reason = str(problem)
        if allocation is not None and queue.requeue(plan.platform, lambda: _again(reason)):
            return 1
        raise
    code = conclude(result, as_json=as_json)
    if allocation is not None and result.waiting and not result.interrupted:
        queue.requeue(plan.platform, _again)
    return code


def _again(why: str = "") -> None:
    """Say that a job is to run once more, and why where nothing has said so yet."""
    said = "The queue is asked to run this job again, on nodes that work."
    note(f"{why}\n{said}" if why else said)
