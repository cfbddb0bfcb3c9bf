"""Decide whether a cell's cold trial, its probe and the division of its step are to be made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.plan.resolve import subject
from harness.store.layout import RunPaths, TrialPaths
from harness.store.outcome import read_outcome
from harness.store.record_readers.attribution import Attribution, read_attribution
from harness.store.run_directory import session_log, trial_folders
from harness.store.run_directory.due import NOT_OF_THE_CELL
from harness.study.framework import framework_info

TRACED_AGAIN = "traced again"
"""Entries of the run's log: of a cell whose traced steps explained nothing."""
MOST_TRACES = 3
"""Of one cell, in as many sessions: a step that every trace slows would be traced for ever."""


def probe_is_due(paths: RunPaths, cell: Cell) -> bool:
    """Tell whether a cell is to be probed now; a probe that was cut off is set aside for that."""
    if not framework_info(cell.adapter).has_probe or cell.factors["message_bytes"] is not None:
        return False  # an exchange of messages computes nothing
    if subject(cell.workload).value.kind == "layer":
        return False  # the probe of its network says what runs
    if _is_on_another_node(cell):
        return False
    cold, probe = paths.cold(cell.key), paths.probe(cell.key)
    if cold.files.exists(cold.outcome) and not read_outcome(cold).is_ok:
        return False
    return first_or_once_more(paths, probe)


def attribution_is_due(paths: RunPaths, cell: Cell, disturbed: Container[str] = ()) -> bool:
    """Tell whether a cell's step is to be divided among its layers now, as its trials are made.

    One that was cut off, or is named as disturbed, is set aside for that.
    """
    if cell.key in disturbed:
        session_log.log(paths, TRACED_AGAIN, cell=cell.key)
        trial_folders.set_aside(paths, paths.attribution(cell.key).root)
        return True
    return _is_divisible(paths, cell) and first_or_once_more(paths, paths.attribution(cell.key))


def undivided(paths: RunPaths, plan: Plan) -> list[str]:
    """Name the cells of which a session that was cut off, or an older one, divided no step.

    Nor measured the ceilings that it had begun to.
    """
    if plan.platform.is_simulated or not plan.measure.explain:
        return []
    return [
        cell.key
        for cell in plan.cells
        if (_is_divisible(paths, cell) and _is_missing(paths.attribution(cell.key)))
        or was_cut_off(paths.ceilings_of(cell.key))
    ]


def disturbed(paths: RunPaths, plan: Plan) -> list[str]:
    """Name the cells whose traced steps explain nothing, as they were disturbed, and may be again.

    At most so many times in all. What was disturbed then lies among what was interrupted.
    """
    if plan.platform.is_simulated or not plan.measure.explain:
        return []
    made = traces_again(paths)
    again = {
        cell.key: found
        for cell in plan.cells
        if 1 + made[cell.key] < MOST_TRACES
        and isinstance(found := read_attribution(paths, cell.key), Attribution)
    }
    if not again:
        return []
    from harness.analysis.analyse import analyse  # heavy, and most sessions have none
    from harness.analysis.explain.step_shares import is_disturbed
    from harness.store.dataset import Dataset

    cells = analyse(Dataset([paths.root])).cells
    timed = [cell for cell in cells if cell.key in again and cell.rate is not None]
    return [cell.key for cell in timed if is_disturbed(cell, again[cell.key])]


def traces_again(paths: RunPaths) -> Counter[str]:
    """Count how often the steps of each cell were to be traced again."""
    log = session_log.read_log(paths).entries
    return Counter(one.cell for one in log if one.what == TRACED_AGAIN)


def _is_divisible(paths: RunPaths, cell: Cell) -> bool:
    """Tell whether a cell's step can be divided among its layers, once it has one."""
    if not framework_info(cell.adapter).attributes or not _is_told_apart(cell):
        return False
    if _is_on_another_node(cell):
        return False
    # without layers, or without a rate to account for
    return subject(cell.workload).value.kind == "train" and trial_folders.has_ok(paths, cell.key)


def _is_told_apart(cell: Cell) -> bool:
    """Tell whether what a cell's ranks exchange, if it has several, is told from computing."""
    if cell.scale.devices == 1:
        return True
    strategies = framework_info(cell.adapter).attributes_ranks
    return cell.scale.devices_per_rank == 1 and cell.strategy in strategies


def _is_on_another_node(cell: Cell) -> bool:
    """Tell whether a cell is the work of another one, sent elsewhere: what runs is the same."""
    return (cell.factors.get("node") or 1) > 1


def first_or_once_more(paths: RunPaths, trial: TrialPaths) -> bool:
    """Tell whether a cell's cold trial or probe is to be made; one cut off is set aside for it."""
    if not _is_missing(trial):
        return False
    if trial.files.exists(trial.outcome):
        trial_folders.set_aside(paths, trial.root)
    return True


def _is_missing(trial: TrialPaths) -> bool:
    return not trial.files.exists(trial.outcome) or was_cut_off(trial)


def was_cut_off(trial: TrialPaths) -> bool:
    """Tell whether a trial ended for something that is no property of its cell."""
    return trial.files.exists(trial.outcome) and read_outcome(trial).ended in NOT_OF_THE_CELL
