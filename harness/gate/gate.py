"""The equivalence gate: does every cell of a plan compute what its workload says?

What is examined of a cell stands in ``cell_gate.py``. Cells that have no examination in common are
examined side by side where cores and memory allow; of what they are held to, one is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from harness.environments import cache
from harness.gate.cell_gate import CellGate
from harness.gate.kept_parts import with_kept_log, writable
from harness.gate.processes import side_by_side
from harness.gate.progress import Watcher
from harness.gate.result import Result
from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.platform.platform import Platform
from harness.ranks import payload as payloads
from harness.ranks.payload import Payload
from harness.store.records import EXAMINATION_FAILED

_Due = tuple[str, Cell]
"""A cell that has to be examined, and what it is called meanwhile."""


def ensure(
    plan: Plan,
    *,
    keep: Callable[[str, Result], None] = lambda _key, _result: None,
    watch: Watcher = lambda _: None,
    payload: Payload | None = None,
    kept: Path | None = None,
) -> dict[str, Result]:
    """Examine every cell of a plan that has no stored result; give the results by cell key.

    ``keep`` is told each cell's as soon as it is known. ``payload`` is what the cells run
    (by default what is installed here), ``kept`` where results are kept, with the logs of
    examinations that failed.
    """
    found: dict[str, Result] = {}
    with ExitStack() as stack:
        payload = payload or payloads.gather()
        kept = writable(kept or cache.home() / "gate", stack)
        gate = CellGate(plan.platform, payload, kept, watch, stack)

        def tell(key: str, result: Result) -> None:
            keep(key, result)
            found[key] = with_kept_log(result, kept / "logs" / f"{key}.log")

        due: list[_Due] = []
        for number, cell in enumerate(plan.cells, start=1):
            known = gate.known(cell)
            if known is None:
                due.append((f"[{number}/{len(plan.cells)}] {cell.label}", cell))
            else:
                tell(cell.key, known)
        groups = _independent(due, plan.platform)
        lanes = side_by_side.lanes(len(groups))
        if lanes < 2:
            for title, cell in due:
                tell(cell.key, gate.check(cell, title))
        else:
            serve = partial(_serve, plan.platform, payload, kept)
            with closing(side_by_side.heard(serve, groups, lanes)) as heard:
                for told in heard:
                    if isinstance(told, str):
                        watch(told)
                    else:
                        tell(*told)
            lost = Result(EXAMINATION_FAILED, "the process that examined it ended before it")
            for _, cell in due:
                if cell.key not in found:
                    tell(cell.key, lost)
    return found


def _independent(due: Sequence[_Due], platform: Platform) -> list[list[_Due]]:
    """Group cells that have examinations in common; a GPU has room for one, as has another node."""
    if platform.launcher.name != "local" or any(one.factors["device"] != "cpu" for _, one in due):
        return [list(due)]
    groups: dict[tuple[str, str], list[_Due]] = {}
    for title, cell in due:
        groups.setdefault((cell.workload, cell.environment), []).append((title, cell))
    return list(groups.values())


def _serve(
    platform: Platform,
    payload: Payload,
    kept: Path,
    groups: Iterator[list[_Due]],
    say: Callable[[object], None],
) -> None:
    """Examine groups of cells in a process of its own."""
    with ExitStack() as stack:
        gate = CellGate(platform, payload, kept, say, stack)
        for group in groups:
            for title, cell in group:
                say((cell.key, gate.check(cell, title)))
