"""Read what each layer needed at least, alone, where a run's untimed jobs measure ceilings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.floors.layer_times import BACKWARD
from harness.store.record_readers.ceilings import LAYER, Ceiling, Conditions
from harness.worker.network.alone import BOTH, FORWARD, SEPARATED


@dataclass(frozen=True)
class LayerFloor:
    """The quickest that one layer and pass was on this machine."""

    seconds: float
    low: float
    high: float
    """Its quickest and its slowest trial."""
    trials: int
    disturbed: bool
    """Whether something disturbed every trial of it: then it may need less."""
    by: str
    """What computed it: framework, settings and versions."""
    environment: str
    """The fingerprint of the environment that it was measured in."""
    layer: str
    run: str
    wall_ns: int


def layers_of(ceilings: Sequence[Ceiling]) -> dict[str, LayerFloor]:
    """Give the quickest that anything was for each layer's pass, by the words of its key.

    Backward is forward and backward, less forward of the same environment.
    """
    alone = {(one.under, one.reached.kernel): one for one in ceilings if one.reached.unit == LAYER}
    found: dict[str, LayerFloor] = {}
    for words, seconds, one in _passes(alone):
        if words not in found or seconds < found[words].seconds:
            found[words] = LayerFloor(
                seconds=seconds,
                low=seconds,
                high=seconds,
                trials=1,
                disturbed=False,
                by=one.under.framework,
                environment=one.under.environment,
                layer=words,
                run=one.measured_in,
                wall_ns=one.measured_wall_ns,
            )
    return found


def _passes(
    alone: Mapping[tuple[Conditions, str], Ceiling],
) -> Iterator[tuple[str, float, Ceiling]]:
    both, forward, backward = (SEPARATED.format(one) for one in (BOTH, FORWARD, BACKWARD))
    for (under, words), one in alone.items():
        seconds = 1 / one.reached.per_s
        yield words, seconds, one
        first = alone.get((under, words.replace(both, forward))) if both in words else None
        if first is not None and seconds > 1 / first.reached.per_s:
            yield words.replace(both, backward), seconds - 1 / first.reached.per_s, one
