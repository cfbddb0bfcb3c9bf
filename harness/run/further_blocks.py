"""Add blocks to a run that is finished; a session then carries them out like any others.

Whoever adds blocks has seen the answers, so that this is a further look, which the plan keeps: what
it costs follows from how many there were (``harness/analysis/stopping.py``).
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.errors import RunError
from harness.plan.order import interleaved
from harness.ranks.payload import gather
from harness.run import trust as trusts
from harness.run.acceptance import accept
from harness.run.setup import read_plan, record, survey, with_hidden_values
from harness.run.sides import own_payloads
from harness.run.trust import Trust, require_plan
from harness.store.run_code import digest_of, plan_digest
from harness.store.run_directory import opening, session_log
from harness.store.run_directory.due import NOT_ENOUGH, read_due
from harness.units import counted


def add_blocks(run: Path, more: int, *, trust: Trust, mix: bool | None = None) -> None:
    """Plan so many further blocks of all cells but those that left answered.

    Refuse a run in which trials are still due, or everything is answered; and what a session here
    would refuse, unless it is to ``mix``: a plan that nobody may carry out says of a look that was
    none. None: the blocks are carried out elsewhere, where that is asked.
    """
    paths = opening.open_run(run.resolve())
    with opening.locked(paths):
        plan, due = read_plan(paths), read_due(paths)
        require_plan(paths, plan, trust)
        if left := due.left().total():
            raise RunError(
                f"{paths.root} still has {counted(left, 'planned trial')} to run, and blocks are "
                f"added to what is finished. First go on: bakeoff resume {paths.root}"
            )
        done = max((block for _, block in due.planned()), default=0)
        going_on = [cell.key for cell in plan.cells if not due.has_left(cell.key, done + 1)]
        if not going_on:
            raise RunError(
                f"{paths.root}: every comparison of this run is answered, and what was answered is "
                "not judged again. For narrower intervals measure anew, with until_interval."
            )
        if mix is not None:
            asked = with_hidden_values(paths, plan)
            basis = survey(asked, own_payloads(paths, asked, gather(), trust))
            accept(paths, asked, basis, going_on, mix=mix, allowed=trust)
        order = interleaved(going_on, trials=done + more, seed=plan.measure.seed)
        raw = opening.stored_plan(paths)
        raw["order"] = [*due.planned(), *(one for one in order if one[1] > done)]
        raw["measure"] = {**raw["measure"], "added": [*plan.measure.added, done]}
        text = json.dumps(raw, indent=1, sort_keys=True, allow_nan=False) + "\n"
        digest = digest_of({paths.plan.name: text.encode()})
        made = paths.files.read_object(paths.run).get("digests")
        was_as_made = isinstance(made, dict) and made.get(paths.plan.name) == plan_digest(paths)
        trusts.remember(digest)
        session_log.log(
            paths,
            NOT_ENOUGH,
            block=done,
            why=f"{counted(more, 'further block')} asked for",
            left=dict(due.left_after),
        )
        paths.files.write(paths.plan, text)
        if was_as_made:  # else readers go on seeing that somebody edited it
            record(paths, {paths.plan.name: digest})
