"""The verb `plan`: what a study would run, what not and why, and how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import Part, Table, emit, emit_json
from harness.cli.study_options import Selection, place, study_options
from harness.units import counted, duration, listed

if TYPE_CHECKING:
    from harness.plan.duration import Estimate
    from harness.plan.plan import Plan
    from harness.plan.power.prospects import KnownNoise

_SHOWN_CELLS = 40
_SHOWN_LABELS = 5


@click.command("plan")
@study_options
@click.option(
    "--script",
    is_flag=True,
    help="Print the batch scripts that `run --detach` would submit, and nothing else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole plan as JSON.")
def command(*, script: bool, as_json: bool, **typed: Any) -> None:
    """Print what a study would run, and touch nothing.

    STUDY is a .toml file, or the name of one under studies/.
    """
    from harness.doctor.known_noise import known
    from harness.plan.duration import doubts, estimate
    from harness.plan.holes import NothingLeft
    from harness.plan.plan import to_json
    from harness.plan.power.prospects import warnings
    from harness.run.storage.missing_data import missing_data

    try:
        _, plan = Selection(**typed).plan()
    except NothingLeft as refusal:
        if as_json:
            emit_json({"cells": [], "holes": refusal.holes})
        raise
    if script:
        _print_scripts(plan, as_json=as_json)
        return
    guess, noise, missing = estimate(plan), known(plan), missing_data(plan)
    timing = {
        "total_s": guess.total_s,
        "node_hours": guess.node_hours,
        "gate_s": guess.gate_s,
        "starts_s": guess.starts_s,
        "notes": [*doubts(plan, guess), *warnings(plan, noise), *missing],
    }
    emit(
        {**to_json(plan), "estimate": timing} if as_json else None,
        lambda: [
            *_in_words(plan, guess, noise),
            *notes(plan, guess, noise),
            *(f"Note: {one}" for one in missing),
        ],
        as_json=as_json,
    )


def _print_scripts(plan: Plan, *, as_json: bool) -> None:
    """Print each job's script; RUN stands for the run's id, which comes with its directory."""
    from harness.run.preflight.preflight import jobs
    from harness.run.unattended.queue import planned_scripts

    scripts = planned_scripts(place(None, plan).resolve(), plan.platform, jobs(plan))
    emit({"scripts": scripts}, lambda: scripts, as_json=as_json)


def headline(plan: Plan, guess: Estimate) -> str:
    """Say in one sentence what will run."""
    cells, trials = len(plan.cells), len(plan.order)
    fewest, most = plan.measure.trials, plan.measure.looks[-1]
    each = counted(most, "trial") if fewest == most else f"{fewest} to {most} trials"
    limit = "" if fewest == most else "at most "
    return (
        f"Study {plan.study.name} on {plan.platform.name}: {counted(cells, 'cell')}, "
        f"{each} each, {limit}{trials} in all, about {duration(guess.total_s)}."
    )


def _in_words(plan: Plan, guess: Estimate, noise: KnownNoise | None) -> list[Part]:
    from harness.plan.power.prospects import prospects
    from harness.plan.turn_rules import in_words

    measure, can_tell = plan.measure, prospects(plan, noise)
    parts: list[Part] = [
        plan.study.title,
        headline(plan, guess),
        (
            f"Each trial: warm-up {_span(measure.warmup)}, measured {_span(measure.until)}, "
            f"ended after {duration(measure.timeout_s)}. "
            f"Blocks are shuffled with seed {measure.seed}."
        ),
        *_schedule(plan),
        *in_words(plan, plan.platform),
        *([can_tell] if can_tell else ()),
        f"Cost: {guess.node_hours:.2f} node-hours.",
        *_beforehand(guess),
        _observer(plan),
        "",
    ]
    references = set(plan.reference.values())
    shown = plan.cells[:_SHOWN_CELLS]
    rows = [
        (
            f"  {cell.key}",
            cell.label,
            f"{duration(guess.trial_s[cell.key])} a trial",
            "reference" if cell.key in references else "",
        )
        for cell in shown
    ]
    parts.append(Table(rows, right=frozenset({2})))
    if len(plan.cells) > len(shown):
        parts.append(f"  … and {len(plan.cells) - len(shown)} more (--json lists all)")
    return parts + _left_out(plan)


def notes(plan: Plan, guess: Estimate, noise: KnownNoise | None) -> list[str]:
    """Say what a person should know before running a plan."""
    from harness.plan.duration import doubts
    from harness.plan.power.prospects import warnings

    told = (*plan.notes, *doubts(plan, guess), *warnings(plan, noise))
    return [f"Note: {note}" for note in told]


def _beforehand(guess: Estimate) -> list[str]:
    """Say what is computed once, before trials, and then kept."""
    lines = []
    if guess.gate_s:
        at_most = f"at most about {duration(guess.gate_s)}, not counted above"
        lines.append(f"Gate: before the first trials, for what it has not examined yet {at_most}.")
    if guess.starts_s:
        about = duration(guess.starts_s)
        lines.append(f"Starts: what trials start from is computed once, about {about}.")
    return lines


def _observer(plan: Plan) -> str:
    """Say which cores are kept for the observer, and when they cannot be."""
    cores = plan.platform.observer.cores
    if cores == 0:
        return "Observer: no core is kept for it; it shares those of the ranks."
    return (
        f"Observer: {counted(cores, 'core')} of each node, where at least two cores and one a rank "
        "are left; where not, it shares the ranks' and their trials are marked."
    )


def _schedule(plan: Plan) -> list[str]:
    """Say when it is decided to go on, and what the pilot block is for."""
    measure, lines = plan.measure, []
    if measure.chosen and measure.budget_s is not None:
        lines.append(
            f"The budget of {duration(measure.budget_s)} chose {measure.trials} trials of "
            f"{_span(measure.until)}: more blocks tell more than longer trials do, as long as "
            "starting up does not take most of the time."
        )
    if measure.until_interval is not None:
        *before, most = measure.looks
        after = f"after {', '.join(map(str, before))} and at most {most}" if before else f"{most}"
        budget = ""
        if measure.budget_s is not None:
            budget = (
                f" No block beyond the first {measure.trials} is started that would end after "
                f"{duration(measure.budget_s)} of measuring."
            )
        lines.append(
            "Blocks are repeated until every interval is within "
            f"{measure.until_interval * 100:.3g} %: looked at {after} blocks, "
            f"the error shared by {counted(len(measure.looks), 'look')}.{budget}"
        )
    if measure.stop is not None:
        first, most = measure.looks[0], measure.looks[-1]
        lines.append(
            f"Blocks are repeated until each comparison is answered, {first} to {most}: one cell "
            "beside its reference is looked at after each, several at looks that share the error."
        )
    piloted = sum(block == 0 for _, block in plan.order)
    if piloted:
        lines.append(
            f"Where no reference is declared, one pilot block of {counted(piloted, 'trial')} "
            "chooses the fastest cell, and is then discarded."
        )
    return lines


def _left_out(plan: Plan) -> list[Part]:
    if not plan.holes:
        return []
    from harness.plan.holes import grouped

    lines: list[Part] = ["", f"Left out: {counted(len(plan.holes), 'cell')}"]
    for why, labels in grouped(plan.holes).items():
        lines.append(f"  {why}: {listed(labels, _SHOWN_LABELS, between='; ')}")
    return lines


def _span(span: Any) -> str:
    return duration(span.seconds) if span.seconds is not None else counted(span.steps, "step")
