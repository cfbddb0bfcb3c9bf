"""Hold the nodes of a screen to each other: rates by node and block, and losses bit by bit.

A trial counts as it ended, whatever its verdict: that a node is throttled is what is looked for. Of
several attempts the first one counts. In pairs a node is judged by the better of its two, since a
sick partner is not its own fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.analysis.nodes.failures import Failure, failures
from harness.analysis.nodes.fingerprint import Mismatch, mismatches
from harness.analysis.nodes.sensors import read_otherwise
from harness.analysis.results import Results
from harness.errors import UsageError
from harness.stats.estimate import median_interval
from harness.stats.odd_ones import ALPHA, FEWEST_BLOCKS, FEWEST_MEMBERS, OddOnes, odd_ones
from harness.store.outcome import Ended
from harness.units import counted, per_cent
from harness.verdicts.results import CellResult, TrialResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAIR = 2


@dataclass(frozen=True)
class NodeMeasure:
    """One node in one measure."""

    node: str
    measure: str
    ratio: float
    """Of the median node's rate."""
    low: float
    high: float
    """From the smallest to the largest block, with six."""
    p: float
    """Adjusted for all nodes and measures."""
    is_named: bool
    sensors: tuple[str, ...] = ()
    """What was read there meanwhile that others read otherwise."""


@dataclass(frozen=True)
class Together:
    """What all nodes reach in one cell; it names nobody."""

    measure: str
    nodes: int
    rate: float
    low: float
    high: float
    unit: str


@dataclass(frozen=True)
class Fleet:
    """What a screen found."""

    nodes: tuple[str, ...]
    measures: tuple[str, ...]
    blocks: int
    alpha: float
    rows: tuple[NodeMeasure, ...]
    mismatches: tuple[Mismatch, ...]
    fingerprint: str
    """What the losses show, or why they show nothing."""
    failures: tuple[Failure, ...] = ()
    """The nodes on which trials failed."""
    together: tuple[Together, ...] = ()
    doubt: str = ""
    """Why no node can be named by its rates."""

    @property
    def sick(self) -> tuple[str, ...]:
        """Name every node that is slower than the others, fails, or whose losses differ."""
        slow = {one.node for one in self.rows if one.is_named and one.ratio < 1}
        wrong = {one.node for one in self.mismatches}
        failing = {one.node for one in self.failures if one.is_named}
        return tuple(node for node in self.nodes if node in slow | wrong | failing)

    @property
    def all_alike(self) -> str:
        """Say that no node differs from the others; "" where one does, or nothing can be told."""
        if self.sick or self.doubt:
            return ""
        return (
            f"No node differs from the others ({counted(len(self.nodes), 'node')}, "
            f"{counted(self.blocks, 'block')}; the chance to name one of equal nodes is "
            f"{per_cent(self.alpha)})."
        )


Rates = dict[str, dict[int, dict[int, float]]]
"""By measure, number of the node, and block."""


def is_screen(results: Results) -> bool:
    """Tell whether each cell of a run is of one of several nodes."""
    nodes = [cell.factors.get("node") for cell in results.cells]
    return all(isinstance(one, int) for one in nodes) and len(set(nodes)) > 1


def fleet(results: Results, losses: Sequence[tuple[Any, ...]]) -> Fleet:
    """Judge the nodes of a screen's run; ``losses``: cell, trial, rank, step and value."""
    if not is_screen(results):
        raise UsageError(
            "This run is no screen: its cells name no node. `bakeoff screen` makes one."
        )
    names, rates, trials = _names(results), Rates(), {}
    for cell in results.cells:
        number, name = cell.factors["node"], _measure(cell)
        if name is None:
            continue
        for trial in cell.trials:
            if trial.attempt == 1 and (rate := _rate(cell, trial)):
                rates.setdefault(name, {}).setdefault(number, {})[trial.block] = rate
                trials[name, number, trial.block] = trial
    rates = {name: _better(of) if name.endswith("pairs") else of for name, of in rates.items()}
    numbers = tuple(sorted(names))
    blocks = sorted({block for of in rates.values() for some in of.values() for block in some})
    measures = tuple(sorted(rates))
    table = np.array(
        [
            [[rates[one].get(node, {}).get(block, np.nan) for block in blocks] for node in numbers]
            for one in measures
        ]
    ).reshape(len(measures), len(numbers), len(blocks))
    doubt = _doubt(table)
    found = None if doubt else odd_ones(np.log(table))
    rows = tuple(
        _row(
            names[node], one, np.log(table[at]), place, found, at, read_otherwise(trials, one, node)
        )
        for at, one in enumerate(measures)
        for place, node in enumerate(numbers)
        if np.isfinite(table[at, place]).any()
    )
    alone = {
        cell.key: names[cell.factors["node"]] for cell in results.cells if cell.scale.nodes == 1
    }
    wrong, fingerprint = mismatches([(alone[key], *rest) for key, *rest in losses if key in alone])
    measured = {name for cell in results.cells if (name := _measure(cell)) is not None}
    return Fleet(
        nodes=tuple(names[one] for one in numbers),
        measures=measures,
        blocks=len(blocks),
        alpha=ALPHA,
        rows=rows,
        mismatches=wrong,
        fingerprint=fingerprint,
        failures=tuple(
            one
            for measure in sorted(measured)
            for one in failures(measure, _ended(results, measure), names)
        ),
        together=_together(results),
        doubt=doubt,
    )


def _rate(cell: CellResult, trial: TrialResult) -> float | None:
    """Give what nodes are held to each other by: of ranks that do not wait, the slowest's rate.

    Their sum would hide one sick GPU among eight.
    """
    if cell.scale.nodes == 1 and cell.scale.ranks > 1 and cell.parameters is None:
        return 1 / trial.p50_s if trial.rate and trial.p50_s else None
    return trial.rate


def _measure(cell: CellResult) -> str | None:
    """Name what a cell measures of a node; None: it is of all nodes together."""
    if cell.scale.nodes > _PAIR:
        return None
    tier = cell.factors.get("tier")
    where = "pairs" if cell.scale.nodes == _PAIR else tier
    return f"{cell.workload}, {where}" if where else cell.workload


def _ended(results: Results, measure: str) -> dict[int, dict[int, tuple[TrialResult, ...]]]:
    """Give the trials that say of each node, by block, whether it can do a measure at all."""
    own: dict[int, dict[int, TrialResult]] = {}
    for cell in results.cells:
        if _measure(cell) == measure:
            own[cell.factors["node"]] = {
                one.block: one
                for one in cell.trials
                if one.attempt == 1 and one.outcome != Ended.CANCELLED
            }
    if not measure.endswith("pairs"):
        return {node: {at: (one,) for at, one in some.items()} for node, some in own.items()}
    found: dict[int, dict[int, tuple[TrialResult, ...]]] = {}
    for node, some in own.items():
        before = own.get((node - 2) % max(own) + 1, {})
        found[node] = {at: (some[at], before[at]) for at in some.keys() & before.keys()}
    return found


def _together(results: Results) -> tuple[Together, ...]:
    found = []
    for cell in results.cells:
        rates = [one.rate for one in cell.trials if one.attempt == 1 and one.rate]
        if cell.scale.nodes > _PAIR and rates:
            told = median_interval(rates)
            low, high = (told.low, told.high) if told else (min(rates), max(rates))
            found.append(
                Together(
                    measure=cell.workload,
                    nodes=cell.scale.nodes,
                    rate=float(np.median(rates)),
                    low=low,
                    high=high,
                    unit=f"{cell.unit}/s",
                )
            )
    return tuple(found)


def _names(results: Results) -> dict[int, str]:
    """Name each node by what its trials say; by its number, where that names no single one."""
    said: dict[int, set[str]] = {}
    for cell in results.cells:
        if cell.scale.nodes <= _PAIR:  # of a pair, the first is the one that its number says
            names = {name for trial in cell.trials for name in trial.nodes[:1]}
            said.setdefault(cell.factors["node"], set()).update(names)
    often = Counter(name for names in said.values() for name in names)
    return {
        number: next(iter(names))
        if len(names) == 1 and often[next(iter(names))] == 1
        else f"node {number}"
        for number, names in said.items()
    }


def _better(pairs: Mapping[int, Mapping[int, float]]) -> dict[int, dict[int, float]]:
    """Give each node the better of the pair that it begins and the one that it ends."""
    count = max(pairs)
    found: dict[int, dict[int, float]] = {}
    for number in range(1, count + 1):
        own, before = pairs.get(number, {}), pairs.get((number - 2) % count + 1, {})
        for block in own.keys() & before.keys():
            found.setdefault(number, {})[block] = max(own[block], before[block])
    return found


def _doubt(table: NDArray[np.float64]) -> str:
    _, nodes, blocks = table.shape
    if nodes < FEWEST_MEMBERS:
        return (
            f"Of {nodes} nodes that differ nobody can say which is the odd one; "
            f"{FEWEST_MEMBERS} are needed."
        )
    if blocks < FEWEST_BLOCKS:
        return (
            f"{counted(blocks, 'block')}: too few to tell a slow node from a slow moment; "
            f"{FEWEST_BLOCKS} are needed."
        )
    return ""


def _row(
    node: str,
    measure: str,
    logs: NDArray[np.float64],
    place: int,
    found: OddOnes | None,
    at: int,
    sensors: tuple[str, ...],
) -> NodeMeasure:
    data = logs[place] - np.nanmedian(logs, axis=0)
    data = data[np.isfinite(data)]
    told = median_interval(data.tolist())
    middle = exp(float(np.median(data)))
    low, high = (exp(told.low), exp(told.high)) if told else (middle, middle)
    named = found is not None and bool(found.is_named[at, place])
    p = 1.0 if found is None else float(found.p[at, place])
    return NodeMeasure(node, measure, middle, low, high, p, named, sensors if named else ())
