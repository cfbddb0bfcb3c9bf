"""Carry a plan out: every trial in order; complete trials are not repeated.

Ctrl-C once ends the running trial gently and starts nothing more; twice ends it now. Either way the
run directory is whole, and ``resume`` goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.agent import processes
from harness.errors import RunError, Unavailable
from harness.plan.plan import Plan
from harness.plan.turn_rules import with_partners
from harness.ranks import nodes
from harness.ranks.payload import gather
from harness.run.acceptance import accept
from harness.run.gate_first import Prove, unproved
from harness.run.ledger import Ledger, Rejects
from harness.run.progress import ProgressListener, SessionResult
from harness.run.setup import (
    TrialBasis,
    lay_out,
    prepared,
    read_plan,
    survey,
    with_hidden_values,
)
from harness.run.sides import own_payloads
from harness.run.trials import untimed_jobs
from harness.run.trials.prepared import Prepared
from harness.run.trust import (
    NOTHING,
    Trust,
    admit_payload,
    knows_caches,
    knows_session,
    remember_caches,
    require_plan,
)
from harness.run.worklist import Work
from harness.store.files import once_there_is_space
from harness.store.layout import RunPaths
from harness.store.outcome import read_outcome
from harness.store.run_code import doubts
from harness.store.run_directory import opening, session_log, trial_folders
from harness.store.run_directory.due import read_due
from harness.store.run_directory.identity import Identity, claim, identity, is_copy


def start(
    plan: Plan,
    *,
    root: Path,
    study_text: str,
    numbered: bool = False,
    observer: ProgressListener,
    rejects: Rejects = lambda _: None,
    ensure: Prove | None = None,
    basis: TrialBasis | None = None,
    is_trusted: bool = False,
) -> SessionResult:
    """Make the run directory ``root`` and carry the plan out in it.

    With ``numbered`` the directory gets a number where there is one of that name. ``ensure`` is the
    gate, which examines the cells before their first trials. ``basis`` is what was surveyed of the
    plan already, such as code that some cells have of their own; ``is_trusted`` where nobody here
    knows that.
    """
    nodes.launcher(plan.platform)
    basis = basis or survey(plan)
    paths = lay_out(
        plan, root.resolve(), study_text, basis, numbered=numbered, is_trusted=is_trusted
    )
    with once_there_is_space(f"go on with `bakeoff resume {paths.root}`"), opening.locked(paths):
        session_log.log(paths, "started", trials=len(plan.order), looks=list(plan.measure.looks))
        known = identity(paths)
        cells = prepared(plan, basis, known)
        ledger = Ledger(paths, plan, rejects, observer.noted)
        work = Work(paths, plan, cells, observer, ledger)
        if ensure is not None:
            work.prove(basis, known, ledger.due.waiting(), ensure)
        return work.carry_out()


def lay_out_only(plan: Plan, *, root: Path, study_text: str, numbered: bool) -> Path:
    """Make the run directory ``root`` only, as ``start`` does; queue jobs carry the plan out."""
    nodes.launcher(plan.platform)
    paths = lay_out(plan, root.resolve(), study_text, survey(plan), numbered=numbered)
    session_log.log(paths, "laid out", trials=len(plan.order), looks=list(plan.measure.looks))
    return paths.root


def resume(
    run: Path,
    *,
    mix: bool = False,
    retry_failed: bool = False,
    trust: Trust = NOTHING,
    only: Container[str] | None = None,
    blocks: Container[int] | None = None,
    observer: ProgressListener,
    rejects: Rejects = lambda _: None,
    ensure: Prove | None = None,
) -> SessionResult:
    """Go on with a run; refuse if what it measures has changed, unless mixing is wanted.

    ``only`` names the cells whose trials to run, ``blocks`` the blocks; None: all. Failed trials
    are run once more, and cells that were given up, with ``retry_failed``. ``ensure`` is the gate,
    for cells of which it has said nothing yet.
    """
    paths = opening.open_run(run.resolve())
    with opening.locked(paths):
        plan = read_plan(paths)
        if only is not None:
            plan = replace(plan, order=tuple(one for one in plan.order if one[0] in only))
        if blocks is not None:
            plan = replace(plan, order=tuple(one for one in plan.order if one[1] in blocks))
        if retry_failed or read_due(paths).left():
            require_plan(paths, plan, trust)  # before anything is moved
        _clean_up(paths)
        ledger = Ledger(paths, plan, rejects, observer.noted)
        if retry_failed:
            _retry(paths, ledger, only)
        ledger.repeat_decisions()
        waiting = ledger.due.waiting()
        disturbed = untimed_jobs.disturbed(paths, plan)
        undivided = [
            key
            for key in (*untimed_jobs.undivided(paths, plan), *disturbed)
            if only is None or key in only
        ]
        session_log.log(paths, "resumed", mix=mix, cells_waiting=len(waiting))
        basis, cells = None, dict[str, Prepared]()
        if waiting:
            require_plan(paths, plan, trust)
            plan = with_hidden_values(paths, plan)
            _claim(paths, {*waiting, *read_due(paths).left()}, trust)
            for doubt in doubts(paths):
                observer.noted(f"{paths.root}: {doubt}.")
            basis = survey(plan, own_payloads(paths, plan, gather(), trust))
            ready = sorted(with_partners(plan, plan.platform, waiting))
            _, basis = accept(paths, plan, basis, ready, mix=mix, allowed=trust)
            cells = prepared(plan, basis, identity(paths))
            cells = {key: one for key, one in cells.items() if only is None or key in only}
        elif undivided or (ensure is not None and unproved(paths, plan, only)):
            try:
                require_plan(paths, plan, trust)
                plan = with_hidden_values(paths, plan)
                if undivided:
                    _claim(paths, undivided, trust)
                basis = survey(plan, own_payloads(paths, plan, gather(), trust))
                accepted, basis = accept(paths, plan, basis, (), mix=False, allowed=trust)
            except (RunError, Unavailable) as problem:  # it is complete all the same
                basis = None
                observer.noted(f"{_lacks(undivided)}: {problem}")
            else:
                cells = _unchanged(prepared(plan, basis, accepted), accepted, undivided)
                if len(cells) < len(undivided):
                    changed = [key for key in undivided if key not in cells]
                    labels = ", ".join(plan.cell(key).label for key in changed)
                    observer.noted(f"{_lacks(changed)}: it has changed since: {labels}")
        known = identity(paths)
        work = Work(paths, plan, cells, observer, ledger)
        if ensure is not None and basis is not None:
            work.prove(basis, known, waiting, ensure)
        return work.carry_out()


def prepare_jobs(
    run: Path, *, mix: bool = False, retry_failed: bool = False, trust: Trust = NOTHING
) -> None:
    """Make a run ready for jobs that go on with it: as `resume` does before its first trial."""
    paths = opening.open_run(run.resolve())
    with opening.locked(paths):
        plan = read_plan(paths)
        require_plan(paths, plan, trust)
        _claim(paths, read_due(paths).left(), trust)
        if mix:
            own = own_payloads(paths, plan, gather(), trust)
            basis = survey(with_hidden_values(paths, plan), own)
            accept(paths, plan, basis, sorted(basis.fingerprints), mix=True, allowed=trust)
        else:
            admit_payload(paths, gather(), trust)
        if retry_failed:
            _retry(paths, Ledger(paths, plan, lambda _: None, lambda _: None), None)


def _lacks(undivided: Sequence[str]) -> str:
    what = "Steps cannot be divided among layers by" if undivided else "The gate cannot examine"
    return f"{what} what ran here"


def _unchanged(
    cells: dict[str, Prepared], known: Identity, keys: Container[str]
) -> dict[str, Prepared]:
    """Give those cells that are what their trials were."""
    return {
        key: one
        for key, one in cells.items()
        if key in keys and one.fingerprint == known.accepted.get(key)
    }


def _claim(paths: RunPaths, waiting: Iterable[str], trust: Trust) -> None:
    """Make a copied run one of its own; compile caches that this user did not make are made anew.

    Frameworks run what lies there, and run.json is what a sender says.
    """
    if not claim(paths) and knows_caches(paths, trust):
        return
    paths.files.remove(paths.caches)
    for cold in map(paths.cold, waiting):
        if paths.files.exists(cold.root):
            trial_folders.set_aside(paths, cold.root)
    session_log.log(paths, "caches made anew")
    remember_caches(paths)


def _retry(paths: RunPaths, ledger: Ledger, only: Container[str] | None) -> None:
    """Make failed trials due again, with their cells' failed cold trials and probes."""
    for key in ledger.retry_failed(only):
        for trial in (paths.cold(key), paths.probe(key)):
            if trial.files.exists(trial.outcome) and not read_outcome(trial).is_ok:
                trial_folders.set_aside(paths, trial.root)


def _clean_up(paths: RunPaths) -> None:
    """Remove what a crash left: processes that still carry the run's token, trials cut off."""
    killed = 0
    if not is_copy(paths) and knows_session(paths):  # else the processes are another run's
        wanted = processes.mark(f"{identity(paths).id}/", prefix=True)
        killed = processes.sweep_marked(wanted).killed
    aside = trial_folders.set_interrupted_aside(paths)
    if killed or aside:
        moved = [path.name for path in aside]
        session_log.log(paths, "cleaned up", killed=killed, set_aside=moved)
