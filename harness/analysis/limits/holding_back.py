"""Say what holds a cell back: its step divided by cause, and the rule that names one.

A step is made of what its multiplications and its memory need at least at this machine's ceilings,
what its operations take beyond that or without a processor, the gaps in which the host let nothing
run, waiting for input and the exposed exchange of gradients. A device's own pauses are part of what
its operations take. The largest of all names what holds the cell back, if it is more than a fifth
of the step and no smaller than what is not known. Otherwise no single cause does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.analysis.evidence import Evidence
from harness.analysis.explain.hardware import cores_used
from harness.analysis.explain.step_shares import EXCHANGE, UNEXPLAINED, Key
from harness.analysis.files.bottleneck import HARNESS as BY_HARNESS
from harness.analysis.files.bottleneck import STORAGE as BY_STORAGE
from harness.analysis.files.input_ladders import bottlenecks
from harness.analysis.floors.layer_times import has_whole_devices
from harness.analysis.limits.anatomy import HOST, OTHER, WAITING, Anatomy, anatomy
from harness.analysis.limits.floors import COMPUTING, MOVING, Floor, Roof, floors, roof_of
from harness.analysis.results import Results
from harness.analysis.scaling.gradient_exchange import exchange_pairs
from harness.store.record_readers.attribution import NOT_MADE
from harness.verdicts.results import CellResult

SINGLE = 0.20
"""A cause of less of the step holds nothing back by itself."""
KERNELS, UNDIVIDED = "kernels", "operations"
"""What operations take beyond their floors; and beyond those that are known, if not all are."""
NO_PROCESSOR = "no processor"
"""Operations were under way and no thread of the rank was on a processor."""
COMPUTE_BOUND, MEMORY_BOUND, KERNEL_BOUND = "compute-bound", "memory-bound", "kernel-bound"
HOST_BOUND, INPUT_BOUND, EXCHANGE_BOUND = "host-bound", "input-bound", "exchange-bound"
STARVED = "starved"
NO_SINGLE, NOT_KNOWN = "no single cause", "not known"
_VERDICTS = {
    COMPUTING: COMPUTE_BOUND,
    MOVING: MEMORY_BOUND,
    KERNELS: KERNEL_BOUND,
    HOST: HOST_BOUND,
    WAITING: INPUT_BOUND,
    EXCHANGE: EXCHANGE_BOUND,
    NO_PROCESSOR: STARVED,
}


@dataclass(frozen=True)
class Limit:
    """What holds one cell back."""

    cell: CellResult
    verdict: str
    """compute-, memory-, kernel-, host-, input-, storage-, exchange- or harness-bound, starved, no
    single cause, or not known."""
    shares: Mapping[str, float]
    """Of the step, by cause, largest first; without what carries no mark or was not divided."""
    unknown: float
    """The share of which no cause is known: that, and operations whose floors are not known."""
    why_unknown: tuple[str, ...]
    """Why not."""
    anatomy: Anatomy
    roof: Roof
    alone: float
    """The part of what computing needs that is of layers timed alone, on their own shapes."""
    slow: tuple[tuple[Key, float], ...]
    """The layers' passes that take most beyond their floors, with their shares of the step."""
    busy_cores: float | None
    """Cores that its ranks used, on average; None if nothing observed them."""

    @property
    def first(self) -> tuple[str, float] | None:
        """Give the largest known cause with its share."""
        return next(iter(self.shares.items()), None)


def limits(results: Results, evidence: Evidence) -> dict[str, Limit]:
    """Say what holds each trained cell of one run back, by its key; needs what was gathered."""
    if len(results.runs) > 1 or evidence.attributions is None or evidence.ceilings is None:
        return {}
    pairs = {one.cell.key: one for one in exchange_pairs(results)}
    inputs = bottlenecks(results)
    found = {}
    for cell in results.cells:
        if cell.rate is None or cell.refusal or cell.macs is None:
            continue
        divided = evidence.attributions.get(cell.key, NOT_MADE)
        body = anatomy(cell, divided, pairs.get(cell.key))
        if divided == NOT_MADE and not body.phases and not evidence.ceilings:
            continue  # of a run that nobody asked: an older one, or of what cannot be divided
        roof = roof_of(cell, evidence.ceilings)
        least = floors(cell, roof, evidence.floors)
        found[cell.key] = _limit(body, roof, least, inputs.get((cell.run, cell.key)))
    return found


def _limit(body: Anatomy, roof: Roof, least: Mapping[Key, Floor], by_ladder: str | None) -> Limit:
    shares: dict[str, float] = {}
    unknown = body.unknown
    why = [body.undivided] if body.undivided else []
    shares |= {name: body.phases[name] for name in (HOST, WAITING, EXCHANGE) if name in body.phases}
    of_device, of_unknown = body.not_by_host
    if HOST in shares:
        shares[HOST] -= of_device + of_unknown
    if of_unknown:
        why.append("what the device waited for: the launches were not traced")
    if body.exchange_why:
        why.append(f"what the exchange of gradients costs: {body.exchange_why}")
    needed = {
        by: sum(one.seconds for one in least.values() if one.by == by) / body.step_s
        for by in (COMPUTING, MOVING)
    }
    slow: tuple[tuple[Key, float], ...] = ()
    alone = 0.0
    if body.undivided:
        kernels = 0.0
        needed = _at_most(needed, unknown)
        unknown -= sum(needed.values())
    else:
        needed, alone, slow = _beside_what_ran(body, least)
        unknown += of_unknown
        ran = 1 - sum(shares.values()) - of_unknown - body.phases.get(OTHER, 0.0)
        starved = _without_processor(body.cell, ran)
        shares[NO_PROCESSOR] = starved
        ran -= starved
        needed = _at_most(needed, ran)
        kernels = ran - sum(needed.values())
        unknown += body.phases.get(OTHER, 0.0)
    if not least:
        why.append(_no_floor(body.cell, roof))
    elif not roof.is_whole:
        why.append("what memory needs: the machine's bandwidth or its cache is not known")
    shares |= needed
    if least and roof.is_whole:
        shares[KERNELS] = kernels
    else:
        shares[UNDIVIDED] = kernels
        unknown += kernels
    ordered = sorted(shares.items(), key=lambda one: -one[1])
    known = {name: share for name, share in ordered if share > 0}
    return Limit(
        body.cell,
        _verdict(known, unknown, by_ladder),
        known,
        max(0.0, unknown),
        tuple(why),
        body,
        roof,
        alone,
        slow,
        cores_used(body.cell),
    )


def _verdict(shares: Mapping[str, float], unknown: float, by_ladder: str | None) -> str:
    """Name the largest cause, if it is more than a fifth and no smaller than what is not known."""
    known = {name: one for name, one in shares.items() if name in _VERDICTS}
    name = max(known, key=lambda one: known[one], default=None)
    if name is None or known[name] <= SINGLE or known[name] < unknown:
        return NOT_KNOWN if unknown > SINGLE else NO_SINGLE
    if name == WAITING and by_ladder in (BY_STORAGE, BY_HARNESS):
        return by_ladder
    return _VERDICTS[name]


def _beside_what_ran(
    body: Anatomy, least: Mapping[Key, Floor]
) -> tuple[dict[str, float], float, tuple[tuple[Key, float], ...]]:
    """Hold floors to what each layer's pass took; say how much of computing is of layers alone."""
    took = {one.key: one.share for one in body.sites}
    needed, alone = {COMPUTING: 0.0, MOVING: 0.0}, 0.0
    beyond: dict[Key, float] = {key: share for key, share in took.items() if key != UNEXPLAINED}
    for key, floor in least.items():
        share = floor.held_to(took.get(key, 0.0) * body.step_s) / body.step_s
        needed[floor.by] += share
        alone += share if floor.alone_s is not None else 0.0
        beyond[key] = beyond.get(key, 0.0) - share
    ordered = sorted(beyond.items(), key=lambda one: -one[1])
    part = alone / needed[COMPUTING] if needed[COMPUTING] else 0.0
    return needed, part, tuple(one for one in ordered if one[1] > 0)


def _without_processor(cell: CellResult, ran: float) -> float:
    """Give at least how much of the step operations were under way without a processor.

    On CPUs an operation that runs keeps one core busy or more; of several ranks it is not told.
    """
    busy = cores_used(cell)
    if busy is None or cell.factors.get("device") == "gpu" or cell.scale.devices > 1:
        return 0.0
    return max(0.0, ran - busy)


def _at_most(needed: Mapping[str, float], share: float) -> dict[str, float]:
    """Keep what is needed at least within what there was: ceilings may have been disturbed."""
    total = sum(needed.values())
    scale = min(1.0, max(0.0, share) / total) if total else 0.0
    return {name: one * scale for name, one in needed.items()}


def _no_floor(cell: CellResult, roof: Roof) -> str:
    what = "whether the machine's computing or its memory holds its operations back"
    if not has_whole_devices(cell):
        return f"{what}: its {cell.scale.devices} devices share cores; ceilings are of one alone"
    if roof.compute is None:
        return f"{what}: nothing measured what kernels reach here at most"
    return f"{what}: its network is not the one that this bakeoff knows"
