"""Measure two sides in one session by turns: studies, or runs with the code that they ran."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.output import note
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.plan.cell import Cell
    from harness.plan.two_sides import Side
    from harness.ranks.payload import Payload
    from harness.run.sides import RunSide
    from harness.run.trust import Trust

_FOLDERS = ("payload.2", "payload.3")


_ALIKE = "nothing differs between A and B here and now: the same code, environment and factors"


def measure_both(
    first: str, second: str, *, platform: str | None, trust: Trust
) -> tuple[Path, int]:
    """Run what both have in one session; give the run and the session's exit code."""
    from harness.cli.session_progress import watching
    from harness.cli.verbs.plan import headline, notes
    from harness.cli.verbs.run import conclude
    from harness.doctor.known_noise import known
    from harness.gate.gate import ensure
    from harness.plan.duration import estimate
    from harness.plan.turn_rules import in_words
    from harness.plan.two_sides import two_sided, without
    from harness.ranks.payload import gather
    from harness.run import session
    from harness.run.setup import of_cells, survey
    from harness.run.sides import environment_changes
    from harness.verdicts.ended_trial import doubt

    installed = gather()
    own: dict[str, Payload] = {}
    sides, runs = [], []
    for name, folder in zip((first, second), _FOLDERS, strict=True):
        side, run = _side(name, folder, own, installed, platform, trust)
        sides.append(side)
        runs += [run] if run else []
    plan = two_sided("compare-now", *sides)
    basis = survey(plan, own)
    alike = {
        cell.against: _ALIKE
        for cell in plan.cells
        if cell.against
        and basis.fingerprints[cell.key] == basis.fingerprints[cell.against]
        and _what(plan.cell(cell.against)) == _what(cell)
    }
    plan = without(plan, alike)
    if not plan.cells:
        raise UsageError(
            f"{first} and {second}: {_ALIKE}. What differed between their days cannot be measured "
            "again."
        )
    guess = estimate(plan)
    changed = [words for run in runs for words in environment_changes(run, basis)]
    note(
        "\n".join(
            [
                headline(plan, guess),
                *in_words(plan, plan.platform),
                *notes(plan, guess, known(plan)),
            ]
        )
    )
    for words in dict.fromkeys(changed):
        note(f"Note: since that run its environment changed; what is here now is measured: {words}")
    with watching() as observer:
        result = session.start(
            plan,
            root=Path("runs") / f"{plan.study.name}-{date.today().isoformat()}",
            study_text=f"# bakeoff compare --now {first} {second}\n",
            numbered=True,
            observer=observer,
            rejects=doubt,
            ensure=ensure,
            basis=of_cells(basis, plan),
            is_trusted=any(run.is_trusted for run in runs),
        )
    return result.run, conclude(result, as_json=False, is_shown=False)


def _side(
    name: str,
    folder: str,
    own: dict[str, Payload],
    installed: Payload,
    platform: str | None,
    trust: Trust,
) -> tuple[Side, RunSide | None]:
    """Read a side: a run directory, or else a study."""
    from harness.analysis.read import places_of
    from harness.cli.study_options import Selection
    from harness.plan.two_sides import Side
    from harness.run.sides import run_side
    from harness.store.run_directory.find_runs import is_run

    place = next(filter(is_run, places_of(name)), None)
    if place is None:
        _, plan = Selection(name, platform, None, (), ()).plan()
        return Side(name, plan, None), None
    run = run_side(place, installed, trust)
    if run.payload is not None:
        own[folder] = run.payload
    return Side(name, run.plan, folder if run.payload is not None else None), run


def _what(cell: Cell) -> tuple[object, ...]:
    """Say what a cell is, whatever side it is on; its code and environment are its fingerprint."""
    return cell.workload, cell.environment, cell.strategy, dict(cell.factors), dict(cell.options)
