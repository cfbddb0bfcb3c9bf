"""Put cells in the order a reader compares them in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.cell_names import (
    NAMED_APART,
    distinguishing_factors,
    factor_value,
    factor_words,
    name_of,
)
from harness.store.records import RunInfo
from harness.verdicts.results import CellResult

_CONSTANTS = (
    "device",
    "nodes",
    "sequence",
    "batch",
    "global_batch",
    "precision",
    "compile",
    "input",
    "format",
)


@dataclass(frozen=True)
class Ranking:
    """The cells of one task, fastest first, and what they have in common."""

    workload: str
    """As its task names it."""
    context: str
    unit: str
    varied: tuple[str, ...]
    distinguishing: tuple[str, ...]
    """Those of the varied factors by which cells are named."""
    shared: frozenset[str]
    """Names that several cells would have, as only their options differ."""
    cells: tuple[CellResult, ...]
    """Those with a number that may be ranked."""
    set_aside: tuple[CellResult, ...]
    """Those that compute something else: what the gate found, and runs without exchange."""
    without: tuple[CellResult, ...]
    """Those no trial gave a number for."""
    runs: tuple[RunInfo, ...]
    is_pair: bool = False
    """Whether these are a cell of side A and its cell of side B."""

    @property
    def sizes(self) -> int:
        """How many sizes of message its cells exchange: which is fastest is then no question."""
        return len({c.factors.get("message_bytes") for c in self.cells})

    @property
    def reference(self) -> CellResult | None:
        """The cell the others are compared with; None with several runs, each having its own."""
        found = [c for c in self.cells if c.comparison and c.comparison.answer == "reference"]
        return found[0] if len(found) == 1 else None

    def name(self, cell: CellResult) -> str:
        """Name a cell by what sets it apart within this ranking."""
        name = name_of(cell, self.distinguishing)
        if self.is_pair:
            return f"{name} · {'B' if cell.against else 'A'}"
        if name not in self.shared:
            return name
        return cell.label.removeprefix(f"{cell.workload} · ")  # which has its options, too

    def machine(self, cell: CellResult) -> str:
        """Name the run a cell comes from by its platform, or by itself where that is not enough."""
        platforms = [machine_name(run) for run in self.runs]
        for run, platform in zip(self.runs, platforms, strict=True):
            if cell.run in (run.name, run.directory):
                return platform if platforms.count(platform) == 1 else run.name
        return cell.run


def of_run(ranking: Ranking, run: str) -> Ranking:
    """Keep one run's cells, fastest first."""
    kept = sorted((c for c in ranking.cells if c.run == run), key=_order)
    return replace(ranking, cells=tuple(kept))


def machine_name(run: RunInfo) -> str:
    """Call a run's platform what its file calls it."""
    return str(run.platform.get("title") or run.platform.get("name") or run.name)


def side_word(runs: Sequence[RunInfo]) -> str:
    """Say what several runs are told apart by: their machines, or themselves on one machine."""
    machines = {machine_name(run) for run in runs}
    return "machine" if len(machines) == len(runs) else "run"


def in_sentence(title: str) -> str:
    """Lower the article of a title, nothing else: names keep their capitals."""
    first, _, rest = title.partition(" ")
    return f"{first.lower()} {rest}" if first in ("This", "A", "An", "The") else title


def _differs(cells: Sequence[CellResult], name: str) -> bool:
    return len({repr(factor_value(cell, name)) for cell in cells}) > 1


def _follows(cells: Sequence[CellResult], name: str) -> bool:
    """Tell whether a factor only follows the framework, whose name then says enough."""
    pairs = {(cell.framework, repr(factor_value(cell, name))) for cell in cells}
    frameworks = {framework for framework, _ in pairs}
    return name not in NAMED_APART and 1 < len(frameworks) == len(pairs)


def _context(cells: Sequence[CellResult]) -> str:
    first = cells[0]
    says = []
    for name in _CONSTANTS:
        value = factor_value(first, name)
        plain = value in (None, False, "none") or (name == "nodes" and value == 1)
        if _differs(cells, name) or plain or (name == "input" and _is_said(cells, value)):
            continue
        says.append(f"{value} files" if name == "format" else factor_words(name, value))
    return ", ".join(says)


def _is_said(cells: Sequence[CellResult], value: Any) -> bool:
    """Whether an input says nothing: what is usual, or files whose format says that they are."""
    formats = {factor_value(cell, "format") for cell in cells}
    return value == "synthetic" or (len(formats) == 1 and None not in formats)


def _order(cell: CellResult) -> float:
    return -cell.rate.value if cell.rate else 0.0


def _side_by_side(cells: list[CellResult], runs: Sequence[RunInfo]) -> list[CellResult]:
    """Keep the cells of one key together, groups by their best rate, runs in the given order."""
    places = {name: i for i, run in enumerate(runs) for name in (run.directory, run.name)}
    groups: dict[str, list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(cell.key, []).append(cell)
    for group in groups.values():
        group.sort(key=lambda cell: places.get(cell.run, len(places)))
    return [cell for group in groups.values() for cell in group]


def _shared(cells: Sequence[CellResult], values: Sequence[str]) -> frozenset[str]:
    named = Counter(name for name, _ in {(name_of(cell, values), cell.key) for cell in cells})
    return frozenset(name for name, count in named.items() if count > 1)


def _titles(
    groups: Mapping[tuple[str, str | None], Sequence[CellResult]], factors: Sequence[str]
) -> dict[tuple[str, str | None], str]:
    """Call a group after its task; of several pairs of a task also after their cells of A."""
    heads = {
        group: next((cell for cell in cells if cell.key == group[1]), cells[0])
        for group, cells in groups.items()
    }
    titles = {}
    for group, head in heads.items():
        beside = [one for (task, _), one in heads.items() if task == group[0]]
        varied = [n for n in factors if n != "workload" and _differs(beside, n)]
        name = name_of(head, distinguishing_factors(beside, varied))
        titles[group] = f"{group[0]} · {name}" if len(beside) > 1 else group[0]
    return titles


def rank(
    every: Sequence[CellResult], factors: Sequence[str], runs: tuple[RunInfo, ...]
) -> tuple[Ranking, ...]:
    """Rank each task's cells apart, named by those of the factors that tell them apart.

    Of a session of two sides each pair of cells is ranked by itself.
    """
    heads = {(cell.run, cell.against) for cell in every if cell.against}
    groups: dict[tuple[str, str | None], list[CellResult]] = {}
    for cell in every:
        is_head = (cell.run, cell.key) in heads
        groups.setdefault((cell.task, cell.against or (cell.key if is_head else None)), []).append(
            cell
        )
    titles = _titles(groups, factors)
    found = []
    for group, cells in groups.items():
        varied = tuple(
            name
            for name in factors
            if name != "workload" and _differs(cells, name) and not _follows(cells, name)
        )
        distinguishing = distinguishing_factors(cells, varied)
        differing = [c for c in cells if not c.is_comparable]
        ranked = sorted((c for c in cells if c.rate and c not in differing), key=_order)
        if len(runs) > 1:
            ranked = _side_by_side(ranked, runs)
        found.append(
            Ranking(
                workload=titles[group],
                context=_context(cells),
                unit=next((c.rate.unit for c in cells if c.rate), cells[0].unit),
                varied=varied,
                distinguishing=distinguishing,
                shared=_shared(cells, distinguishing),
                cells=tuple(ranked),
                set_aside=tuple(differing),
                without=tuple(c for c in cells if not c.rate and c not in differing),
                runs=runs,
                is_pair=group[1] is not None,
            )
        )
    return tuple(found)
