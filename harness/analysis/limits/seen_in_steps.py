"""Let a step that was quicker over a layer than the layer alone say what this machine can do.

Not every framework times layers alone, and one alone may wait for memory that its step finds in a
cache. Only what two cells of a run did counts, by the slower of them: one is no measure of itself,
and its step may have been divided wrongly. What took less than
multiplying at the highest rate, or moving its tensors, was computed together with a neighbour, and
says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.analysis.explain.step_shares import step_s, timed_shares
from harness.analysis.floors.kept_floors import MachineFloors
from harness.analysis.floors.layer_times import keys_of_network
from harness.analysis.limits.floors import floors, roof_of
from harness.analysis.results import Results
from harness.store.record_readers.attribution import NOT_MADE, Attribution
from harness.store.record_readers.ceilings import Ceiling
from harness.verdicts.results import CellResult

_CELLS = 2


def lowered(
    known: MachineFloors,
    results: Results,
    attributions: Mapping[str, Attribution | str],
    ceilings: Sequence[Ceiling],
) -> MachineFloors:
    """Lower the floors of layers that were timed alone by the two cells that were quickest."""
    seen: dict[str, dict[str, tuple[float, CellResult]]] = defaultdict(dict)
    for cell in results.cells if known.layers else ():
        divided = attributions.get(cell.key, NOT_MADE)
        for words, took_s in _took(cell, divided, ceilings):
            least_s, _ = seen[words].get(cell.key, (took_s, cell))  # of layers that are alike
            seen[words][cell.key] = min(least_s, took_s), cell
    layers = dict(known.layers)
    for words in layers.keys() & seen.keys():
        if len(seen[words]) < _CELLS:
            continue
        took_s, cell = sorted(seen[words].values(), key=lambda one: one[0])[_CELLS - 1]
        if took_s < layers[words].seconds:
            layers[words] = replace(
                layers[words],
                seconds=took_s,
                low=took_s,
                high=took_s,
                disturbed=False,
                by=f"{cell.framework}, in its step",
                environment="",
                run=cell.run,
            )
    return replace(known, layers=layers)


def _took(
    cell: CellResult, divided: Attribution | str, ceilings: Sequence[Ceiling]
) -> Iterator[tuple[str, float]]:
    """Give what a cell's step took for each layer's pass that it may have computed whole."""
    shares = divided if cell.rate is None or cell.refusal else timed_shares(cell, divided)
    if isinstance(shares, Attribution | str):
        return
    keys, least = keys_of_network(cell), floors(cell, roof_of(cell, ceilings))
    for key in keys.keys() & least.keys() & shares.parts.keys():
        took_s = shares.parts[key].mean * step_s(cell)
        if took_s >= least[key].seconds:
            yield keys[key].words, took_s
