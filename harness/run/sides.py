"""Take a side of a comparison from a run that was made before: its plan, and the code it ran.

Both are carried out only by the rules of `bakeoff resume`: this user made them, or trusts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.environments.identity.changes import changes
from harness.errors import RunError
from harness.plan.plan import Plan
from harness.plan.turn_rules import has_two_sides
from harness.ranks.payload import Payload, copied, remove_byte_code
from harness.run.setup import TrialBasis, read_plan, with_hidden_values
from harness.run.trust import Trust, differing_files, knows_code, knows_payload, require_plan
from harness.store.layout import RunPaths
from harness.store.paths.names import payload_name
from harness.store.run_code import payload_digest
from harness.store.run_directory import opening
from harness.store.run_directory.identity import identity


@dataclass(frozen=True)
class RunSide:
    """What a run would carry out once more."""

    paths: RunPaths
    plan: Plan
    payload: Payload | None
    """Its own code; None where that is what is installed here."""
    is_trusted: bool
    """Whether nobody here knows that code, and it is carried out on trust alone."""


def run_side(run: Path, installed: Payload, trust: Trust) -> RunSide:
    """Read what a run would carry out once more; refuse what is neither known nor trusted."""
    paths = opening.open_run(run.resolve())
    plan = read_plan(paths)
    if has_two_sides(plan):
        raise RunError(f"{run} compares two sides already: bakeoff compare {run} says its answer.")
    require_plan(paths, plan, trust)
    folder = paths.root / identity(paths).payload
    _require_there(paths, folder)
    is_known = knows_payload(paths, installed, trust)
    if not is_known and not trust.payload:
        raise RunError(
            f"{run}: its code is neither what you ran before nor what this bakeoff would write; it "
            f"differs in {differing_files(paths, installed)}. To run it once more, if you trust "
            "it, add --trust-payload."
        )
    plan = with_hidden_values(paths, plan)
    there = copied(folder, paths.files, installed)
    own = None if there.digest() == installed.digest() else there
    return RunSide(paths, plan, own, not is_known)


def environment_changes(side: RunSide, basis: TrialBasis) -> Iterator[str]:
    """Say what of a run's environments is not here any more: what is here now takes its place."""
    for name in sorted({cell.environment for cell in side.plan.cells}):
        place = side.paths.environment(name)
        if name in basis.interpreters and side.paths.files.exists(place):
            old = side.paths.files.read_object(place)
            yield from changes(name, old, basis.interpreters[name])


def own_payloads(
    paths: RunPaths, plan: Plan, installed: Payload, trust: Trust
) -> dict[str, Payload]:
    """Read the code that cells of a run have of their own; refuse what was changed since."""
    found = {}
    for name in sorted({cell.payload for cell in plan.cells if cell.payload}):
        folder = paths.root / payload_name(name)
        _require_there(paths, folder)
        remove_byte_code(paths.files, folder)
        if not knows_code(payload_digest(paths.files, folder), trust):
            raise RunError(
                f"{folder}: this code of one side was changed since the run was made, or you did "
                "not make it. If you trust it, add --trust-payload; or compare anew."
            )
        found[name] = copied(folder, paths.files, installed)
    return found


def _require_there(paths: RunPaths, folder: Path) -> None:
    """Refuse a side whose code is gone: what ran then cannot be run once more."""
    if not paths.files.exists(folder):
        raise RunError(f"{folder}: the code of this side is not there, so it cannot be run again.")
