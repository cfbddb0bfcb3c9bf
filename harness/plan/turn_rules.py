"""Rules of turns: which cells can live at the same time as others of their block, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from harness.plan.cell import Cell
from harness.plan.plan import PlannedStudy
from harness.plan.rounds import rounds
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.study.measure import Measure
from harness.units import duration, listed
from harness.worker.network.workload import task
from harness.worker.windows.turns import SETTLING_S

_HERE = "local"
_NAMED = 5
"""Cells that run alone for one reason, named in the plan."""


def task_of(cell: Cell) -> str:
    """Name what a cell does: only cells of one task are compared, and take turns."""
    return task(cell.workload, cell.factors)


def companies(plan: PlannedStudy) -> Mapping[str, str]:
    """Name by key with whom cells take turns: those they are compared with.

    They are all of the task; where a plan has two sides, a cell of A and the one held against it,
    and A's key is the name.
    """
    if has_two_sides(plan):
        return {cell.key: cell.against or cell.key for cell in plan.cells}
    return {cell.key: task_of(cell) for cell in plan.cells}


def has_two_sides(plan: PlannedStudy) -> bool:
    """Whether cells are held against those of another side, instead of a reference."""
    return any(cell.against for cell in plan.cells)


def reasons(plan: PlannedStudy, platform: Platform) -> Mapping[str, str]:
    """Say by key why cells run alone in their blocks; those that take turns are left out."""
    why = {cell.key: _why(cell, plan.measure, platform) for cell in plan.cells}
    company = companies(plan)
    together = Counter(company[cell.key] for cell in plan.cells if not why[cell.key])
    nobody = "no other cell of its work takes turns"
    if has_two_sides(plan):
        nobody = "the cell that it is compared with takes none"
    for cell in plan.cells:
        if not why[cell.key] and together[company[cell.key]] < 2:
            why[cell.key] = nobody
    return {key: reason for key, reason in why.items() if reason}


def in_words(plan: PlannedStudy, platform: Platform) -> tuple[str, ...]:
    """Say how many cells take turns, and which do not; nothing where nothing is measured by turns.

    A study that switched turns off knows it, and what is simulated is measured nowhere.
    """
    if not plan.measure.turns or platform.is_simulated:
        return ()
    why = reasons(plan, platform)
    labels_by_key = {cell.key: cell.label for cell in plan.cells}
    together = len(plan.cells) - len(why)
    alone: dict[str, list[str]] = {}
    for key, reason in why.items():
        alone.setdefault(reason, []).append(labels_by_key[key])
    whose = "those of one workload live"
    divided = " What does not fit into memory together is divided, with the reference in each part."
    if has_two_sides(plan):
        whose, divided = "a cell of A and its cell of B live", ""
    first = (
        f"Turns: {together} of {len(plan.cells)} cells take turns of "
        f"{_turn(plan.measure)}, a few steps at least, each after {SETTLING_S} s at most (three "
        "windows at least) in which it settles: "
        f"{whose} at the same time in each block, one works, the others are stopped. A block lasts "
        f"as long as their trials one after the other.{divided}"
    )
    said = [first if together else "Turns: no cell takes turns."]
    for reason, labels in sorted(alone.items(), key=lambda one: -len(one[1])):
        named = listed(labels, _NAMED, between="; ")
        said.append(f"  alone in its block, because {reason}: {named}")
    return tuple(said)


def _turn(measure: Measure) -> str:
    """Say how long a turn of short steps lasts: less than asked for where rounds would be few."""
    planned = rounds(measure.until, turn_s=measure.turn_s, steps_s=[0.0]).span(1).seconds
    return duration(measure.turn_s if planned is None else planned)


def with_partners(plan: PlannedStudy, platform: Platform, keys: Set[str]) -> set[str]:
    """Add the cells that may be measured once more beside some cells that are due."""
    if not plan.measure.turns:
        return set(keys)
    alone = reasons(plan, platform)
    able = {key: name for key, name in companies(plan).items() if key not in alone}
    wanted = {able[key] for key in able.keys() & keys}
    return set(keys) | {key for key, name in able.items() if name in wanted}


def _why(cell: Cell, measure: Measure, platform: Platform) -> str:
    """Give the first reason that holds; empty where a cell can stand still beside others."""
    factors, info = cell.factors, framework_info(cell.adapter)
    holds: Sequence[tuple[object, str]] = (
        (platform.is_simulated, "it is simulated"),
        (cell.scale.nodes > 1, "it takes several nodes"),
        (platform.launcher.name != _HERE, f"{platform.launcher.name} starts its ranks"),
        (factors["container"], "it runs in a container"),
        (measure.memory_bytes, "its memory is limited"),
        (factors["device"] == "gpu", "frameworks reserve the memory of a GPU"),
        (cell.content, "it reads files"),
        (factors["checkpoint_every"], "it saves checkpoints"),
        (info.steps_by_itself, f"{info.title} steps by itself"),
        (
            cell.scale.ranks > 1 and info.strategy(cell.strategy).heartbeats,
            "its ranks give each other up when they stand still",
        ),
    )
    return next((reason for is_so, reason in holds if is_so), "")
