"""Plan one session of two plans: the cells that both have, each twice, compared by turns.

Cells are paired by what varies within either plan, so that whatever else differs between the two
(a batch, an environment, the code of a plug-in) is what the session compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import UsageError
from harness.plan.cell import KEY_LENGTH, Cell
from harness.plan.holes import Hole
from harness.plan.order import interleaved
from harness.plan.plan import Heading, Plan
from harness.plan.turn_rules import task_of
from harness.stats.answers import FEWEST_BLOCKS
from harness.study.matrix import adapter_of
from harness.study.measure import Measure

_SIDES = ("A", "B")


@dataclass(frozen=True)
class Side:
    """One of two plans, and the folder of the session's run that its own code will lie in."""

    name: str
    plan: Plan
    payload: str | None
    """None: it is what is installed here."""


def two_sided(name: str, first: Side, second: Side) -> Plan:
    """Plan the cells that both sides have; those of B name the cell of A they are held against."""
    if first.plan.platform != second.plan.platform:
        raise UsageError(
            f"{first.name} is planned for {first.plan.platform.name} and {second.name} for "
            f"{second.plan.platform.name}: one session has one machine. Name it by --platform."
        )
    names = _told_apart(first.plan, second.plan)
    sides = _by_values((first, second), names)
    shared = [values for values in sides[0] if values in sides[1]]
    cells: list[Cell] = []
    for values in shared:
        mine, other = sides[0][values], sides[1][values]
        own = replace(mine, label=f"{mine.label} · A", payload=first.payload)
        cells += [own, _held_against(own, other, second.payload)]
    holes = [
        Hole(cell.label, _named(cell), f"only {which} has it")
        for side, others, which in zip(sides, sides[::-1], _SIDES, strict=True)
        for values, cell in side.items()
        if values not in others
    ]
    if not cells:
        listed = "".join(f"\n    {hole.label}: {hole.why}" for hole in holes[:10])
        raise UsageError(f"{first.name} and {second.name} have no cell in common:{listed}")
    notes = [f"A is {first.name}, B is {second.name}."]
    if second.plan.measure != first.plan.measure:
        notes.append("The two have different protocols: this session takes A's for both.")
    measure, how_many = _protocol(first.plan.measure)
    notes += how_many
    keys = [cell.key for cell in cells]
    return Plan(
        study=Heading(
            name=name,
            title=f"B ({second.name}) against A ({first.name})",
            question="Is B faster or slower than A?",
            size=None,
            only=(),
            overrides=(),
        ),
        platform=first.plan.platform,
        cells=tuple(cells),
        holes=tuple(holes),
        reference=_references(cells),
        varied=tuple(dict.fromkeys((*first.plan.varied, *second.plan.varied))),
        order=interleaved(keys, trials=measure.looks[-1], seed=measure.seed),
        measure=measure,
        notes=tuple(notes),
    )


def without(plan: Plan, alike: Mapping[str, str]) -> Plan:
    """Leave out pairs, by the key of A's cell, with the reason."""
    gone = {cell.key for cell in plan.cells if cell.key in alike or cell.against in alike}
    holes = tuple(
        Hole(plan.cell(key).label, _named(plan.cell(key)), why) for key, why in alike.items()
    )
    left = tuple(cell for cell in plan.cells if cell.key not in gone)
    return replace(
        plan,
        cells=left,
        holes=(*plan.holes, *holes),
        reference=_references(left),
        order=tuple(one for one in plan.order if one[0] not in gone),
    )


def _references(cells: Sequence[Cell]) -> dict[str, str]:
    """Give the first cell of A of each task."""
    return {task_of(cell): cell.key for cell in reversed(cells) if not cell.against}


def _held_against(cell: Cell, other: Cell, payload: str | None) -> Cell:
    """Give a cell of B a key of its own: the same may be A's."""
    key = hashlib.sha256(f"B {other.key} against {cell.key}".encode()).hexdigest()[:KEY_LENGTH]
    label = f"{other.label} · B"
    return replace(other, key=key, label=label, payload=payload, against=cell.key)


def _protocol(measure: Measure) -> tuple[Measure, list[str]]:
    """Give the session's protocol, and say how many blocks it runs where the study has another way.

    What would end a study once it is answered are comparisons with a reference; here each pair is
    compared by itself, so that all blocks are run.
    """
    measure, most = replace(measure, added=()), measure.looks[-1]
    blocks = max(most, FEWEST_BLOCKS)
    if measure.stop is None and blocks == most:
        return measure, []
    notes = []
    if measure.stop is not None:
        budget = " or its budget" if measure.budget_s is not None else ""
        notes.append(
            f'All {blocks} blocks are run: stop = "answered"{budget} ends no session of two sides.'
        )
        measure = replace(measure, stop=None, budget_s=None)
    if blocks > most:
        notes.append(f"{blocks} blocks are run: fewer cannot tell.")
    return replace(measure, trials=blocks, trials_at_most=None), notes


def _told_apart(first: Plan, second: Plan) -> tuple[str, ...]:
    """Name what tells the cells of either plan apart."""
    return tuple(dict.fromkeys(("workload", *first.varied, *second.varied)))


def _by_values(sides: Sequence[Side], names: Sequence[str]) -> list[dict[tuple[Any, ...], Cell]]:
    """Give sides' cells by their values; environments tell apart only what nothing else does."""
    loose, exact = (
        [{_values(cell, names, exact=how): cell for cell in side.plan.cells} for side in sides]
        for how in (False, True)
    )
    is_enough = all(len(one) == len(other) for one, other in zip(loose, exact, strict=True))
    return loose if is_enough else exact


def _named(cell: Cell) -> dict[str, Any]:
    return {"workload": cell.workload, "framework": cell.framework, **cell.factors}


def _values(cell: Cell, names: Sequence[str], *, exact: bool) -> tuple[Any, ...]:
    framework = cell.framework if exact else adapter_of(cell.framework)
    own = {f"{cell.adapter}.{name}": one for name, one in cell.options.items()}
    known = {**cell.factors, **own, "workload": cell.workload, "framework": framework}
    return tuple(known.get(name) for name in names)
