"""Let a step that was quicker over a layer than the layer alone say what this machine can do.

Not every framework times layers alone, and one alone may wait for memory that its step finds in a
cache. What took less than multiplying at the highest rate, or moving its tensors, was computed
together with a neighbour, and says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.analysis.explain.step_shares import step_s, timed_shares
from harness.analysis.floors.kept_floors import MachineFloors
from harness.analysis.floors.layer_times import keys_of_network
from harness.analysis.limits.floors import floors, roof_of
from harness.analysis.results import Results
from harness.store.record_readers.attribution import NOT_MADE, Attribution
from harness.store.record_readers.ceilings import Ceiling


def lowered(
    known: MachineFloors,
    results: Results,
    attributions: Mapping[str, Attribution | str],
    ceilings: Sequence[Ceiling],
) -> MachineFloors:
    """Lower the floors of layers that were timed alone by what steps of the run took for them."""
    layers = dict(known.layers)
    for cell in results.cells if layers else ():
        if cell.rate is None or cell.refusal:
            continue
        shares = timed_shares(cell, attributions.get(cell.key, NOT_MADE))
        if isinstance(shares, str):
            continue
        keys, least = keys_of_network(cell), floors(cell, roof_of(cell, ceilings))
        for key, share in shares.parts.items():
            words = keys[key].words if key in keys else ""
            took_s = share.mean * step_s(cell)
            if words not in layers or key not in least or took_s < least[key].seconds:
                continue
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
