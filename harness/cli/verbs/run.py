"""The verb `run`: carry a study out and end with its answer and its page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import emit, near, note
from harness.cli.partner_options import refuse_without
from harness.cli.queue_options import hand_over, queue_options
from harness.cli.study_options import Selection, place, study_options
from harness.units import counted

if TYPE_CHECKING:
    from harness.plan.plan import Plan
    from harness.run.progress import SessionResult


@click.command("run")
@study_options
@click.option("--name", help="What to call the run; by default the study and the date.")
@click.option(
    "--create-environments",
    is_flag=True,
    help="Build the framework environments that the study needs first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results, or the jobs, as JSON.")
@queue_options
def command(
    *,
    name: str | None,
    create_environments: bool,
    as_json: bool,
    detach: bool,
    max_jobs: int | None,
    max_node_hours: float | None,
    spread: int | None,
    **typed: Any,
) -> int:
    """Run a study and write its report.

    STUDY is a .toml file, or the name of one under studies/. Results go to runs/. Ctrl-C is safe:
    what finished is kept, and `bakeoff resume` goes on.
    """
    from harness.cli.session_progress import watching
    from harness.cli.verbs.plan import headline, notes
    from harness.doctor.known_noise import known
    from harness.gate.gate import ensure
    from harness.plan.duration import estimate
    from harness.run import session
    from harness.verdicts.ended_trial import doubt

    refuse_without(
        "detach", detach, max_jobs=max_jobs, max_node_hours=max_node_hours, spread=spread
    )
    study, plan = Selection(**typed).plan()
    if create_environments:
        create_missing(plan)
    guess = estimate(plan)
    note("\n".join([headline(plan, guess), *_left_out(plan), *notes(plan, guess, known(plan))]))
    root, numbered = place(name, plan), name is None
    if detach:
        hand_over(
            plan,
            Counter(key for key, _ in plan.order),
            lambda: session.lay_out_only(plan, root=root, study_text=study.text, numbered=numbered),
            max_jobs=max_jobs,
            max_node_hours=max_node_hours,
            spread=spread,
            as_json=as_json,
        )
        return 0
    with watching() as observer:
        result = session.start(
            plan,
            root=root,
            study_text=study.text,
            numbered=numbered,
            observer=observer,
            rejects=doubt,
            ensure=ensure,
        )
    return conclude(result, as_json=as_json)


def _left_out(plan: Plan) -> list[str]:
    """Say that cells were asked for which do not run; why takes a table."""
    many = counted(len(plan.holes), "cell")
    return [f"Left out: {many}; `bakeoff plan` of the same study says why."] if plan.holes else []


def create_missing(plan: Plan) -> None:
    """Build the managed environments that a plan's cells start in."""
    from harness.cli.build_progress import listening
    from harness.environments import local, worker_python
    from harness.environments.lock import EnvironmentReference
    from harness.errors import Unavailable

    with listening() as listener:
        for name in sorted({cell.environment for cell in plan.cells}):
            try:
                worker_python.resolve(name, plan.platform)
            except Unavailable:
                local.create(EnvironmentReference.parse(name), listener)


def conclude(result: SessionResult, *, as_json: bool, is_shown: bool = True) -> int:
    """Say what a session achieved, write the page, and give the exit code.

    The results themselves are left to the caller where they are not shown.
    """
    from harness.doctor import known_noise
    from harness.store.files import once_there_is_space
    from harness.store.layout import RunPaths
    from harness.store.paths.handles import staying_the_same
    from harness.store.record_readers.run_reader import read_run
    from harness.store.samples.sample_parquet import write_missing_of_run
    from reports.exports.results_file import summary
    from reports.page.files import write_page
    from reports.text.shortcomings import shortcomings
    from reports.text.terminal import render as in_words

    note(_how_it_went(result))
    if result.interrupted:
        return result.interrupted
    code = 1
    if result.done:
        page = RunPaths(result.run).report
        then = f"make the page with `bakeoff report {near(result.run)}`"
        with once_there_is_space(then), staying_the_same(result.run, result.made):
            written = write_page([result.run], page)
            results, evidence = written.results, written.evidence
            write_missing_of_run(read_run(result.run))
        known_noise.learn(results)
        code = 1 if shortcomings(results, lost=result.total - result.ok) else 0
        summary_fields = {"run": result.run, "report": page, **vars(summary(results, evidence))}
        more = f"Report: {near(page)}        Next: bakeoff show, bakeoff sql, bakeoff compare"
        if not is_shown:
            note(f"Report: {near(page)}")
        else:
            words = in_words(results, evidence=evidence)
            emit(summary_fields, lambda: ["", words, more], as_json=as_json)
    return code


def _how_it_went(result: SessionResult) -> str:
    words = [f"{result.done} of {result.total} planned trials, {result.ok} ok"]
    if result.failed:
        words.append(f"{result.failed} failed")
    if result.skipped:
        words.append(f"{result.skipped} skipped, because their cell cannot succeed")
    if result.interrupted:
        return f"Stopped: {', '.join(words)}. To go on: bakeoff resume {near(result.run)}"
    if result.waiting:
        words.append(f"{result.waiting} left, because too few nodes answer")
    if result.lost:
        words.append(f"{result.lost} left, because their nodes failed again and again")
    if result.waiting or result.lost:
        return f"Incomplete: {', '.join(words)}. To go on: bakeoff resume {near(result.run)}"
    if result.failed or result.skipped:
        retry = f"bakeoff resume {near(result.run)} --retry-failed"
        return f"Done: {', '.join(words)}. To try what failed again: {retry}"
    return f"Done: {', '.join(words)}."
