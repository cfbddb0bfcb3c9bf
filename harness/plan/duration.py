"""Estimate how long a plan takes, first from its protocol, then from its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from statistics import median

from harness import plugins
from harness.data.catalogue import CONTENTS
from harness.plan.ceiling_cells import ceiling_cells, times_layers
from harness.plan.cell import Cell
from harness.plan.gate_duration import gate_s
from harness.plan.norm_parts import norm_parts_of
from harness.plan.plan import Plan
from harness.plan.rounds import rounds
from harness.plan.turn_rules import reasons
from harness.study.framework import framework_info
from harness.units import counted, duration
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC, PASSES
from harness.worker.job import Span
from harness.worker.network.shapes import count, couples_samples, has_dropout
from harness.worker.network.workload import Training
from harness.worker.windows.turns import SETTLING_S, SETTLING_WINDOWS

# What training reaches on ordinary hardware, for a first guess only: FLOP/s of one CPU, and of one
# accelerator.
_CPU_FLOPS = 50e9
_GPU_FLOPS = 20e12
# What one node reads of a cold store, for a first guess only: bytes per second.
_READ_BYTES = 200e6
# What all trials of a network at one batch start from, and are examined from, is computed once, in
# float64: products a second of a core, and seconds for each parameter that is drawn and written.
_START_MACS_PER_S = 1e9
_START_S_PER_PARAMETER = 1.2e-7
UPDATES = 3
"""Of the proof of what was timed."""
MOST_START_MACS, MOST_DROPPED_MACS = 1.1e11, 5e10
"""No start is computed that would take more forward multiplications for its updates; where dropouts
drop, each examined trial computes them anew."""
_PICTURES, _PICTURES_OF_PART, _PICTURES_DROPPED = (16, 4, 2), 2, 2
_DIVIDED_S = 5.0
"""Of the job that divides a cell's step among its layers: its steps, and reading their trace."""
_CEILINGS_S = 6.0
"""Of the job that measures what kernels reach at most: three, each for a second once it is warm."""
_LAYERS_S = 6.0
"""Of the layers that the same job times alone."""
# Of compiling a step, or of finding it compiled: seconds, and more for each layer. A network of
# 15 layers took XLA some 10 s, and 1 s from its cache; one of 174 takes about a minute.
_COMPILE_S = {"cold": (5.0, 0.35), "warm": (1.0, 0.05)}


@dataclass(frozen=True)
class Estimate:
    """How long trials and the whole plan take."""

    trial_s: Mapping[str, float]
    """By cell key, one trial."""
    total_s: float
    """All trials of the plan, one after another, what they start from, and the untimed jobs."""
    node_hours: float
    refined: bool
    """Whether finished trials stand behind it."""
    gate_s: float
    """What the gate takes before the first trials where it has examined nothing yet."""
    starts_s: float
    """What it takes to compute what trials start from, and are examined from; in ``total_s``."""
    late: Mapping[str, float]
    """By cell key, what trials would take that the timeout ends before: a guess, in seconds."""


def estimate(plan: Plan, observed: Mapping[str, Sequence[float]] | None = None) -> Estimate:
    """Estimate a plan, given the durations in seconds of its trials so far, by cell key.

    A cell with finished trials takes their median; the guesses for the others are scaled by what
    the finished ones took in proportion to theirs.
    """
    alone = reasons(plan, plan.platform) if plan.measure.turns else {one.key for one in plan.cells}
    guesses = {
        cell.key: _guess(plan, cell) + (0.0 if cell.key in alone else _settling_s(plan, cell))
        for cell in plan.cells
    }
    known = {key: median(seconds) for key, seconds in (observed or {}).items() if seconds}
    known = {key: seconds for key, seconds in known.items() if key in guesses}
    scale = median([known[key] / guesses[key] for key in known]) if known else 1.0
    limit = plan.measure.timeout_s
    expected = {key: known.get(key, guess * scale) for key, guess in guesses.items()}
    trials = {key: min(seconds, limit) for key, seconds in expected.items()}
    nodes = {cell.key: cell.scale.nodes for cell in plan.cells}
    starts_s = 0.0 if known else _starts_s(plan)
    untimed = {cell.key: _untimed_s(plan, cell, has_begun=bool(known)) for cell in plan.cells}
    for key in () if plan.platform.is_simulated else ceiling_cells(plan.cells):
        cell = plan.by_key[key]
        layers_s = _LAYERS_S if times_layers(cell) else 0.0
        untimed[key] += _start_s(plan, cell) + _CEILINGS_S + layers_s
    return Estimate(
        trial_s=trials,
        total_s=starts_s + sum(trials[key] for key, _ in plan.order) + sum(untimed.values()),
        node_hours=(
            starts_s
            + sum(trials[key] * nodes[key] for key, _ in plan.order)
            + sum(untimed[key] * nodes[key] for key in untimed)
        )
        / 3600,
        refined=bool(known),
        gate_s=0.0 if known else gate_s(plan),
        starts_s=starts_s,
        late={key: s for key, s in expected.items() if s > limit and key not in known},
    )


def doubts(plan: Plan, guess: Estimate) -> tuple[str, ...]:
    """Warn of cells that will probably not end before their timeout."""
    if not guess.late:
        return ()
    key, seconds = max(guess.late.items(), key=lambda one: one[1])
    doubt = (
        f"{counted(len(guess.late), 'cell')} may not end within measure.timeout "
        f"({duration(plan.measure.timeout_s)}): "
        f"{plan.cell(key).label} is guessed to take {duration(seconds)}. "
        "Raise the timeout or measure less."
    )
    return (doubt,)


def pictures_of(workload: Training, batch: int, parts: int = 1) -> int:
    """Say how many different pictures fill each part of the batch from which trials are examined.

    Where one sample alone has a gradient, and no batch norm, the others matter to nothing.
    """
    each = batch // parts
    if _is_alone(workload):
        return min(each, _PICTURES_DROPPED)
    within = (n for n in _PICTURES if UPDATES * min(batch, n) * workload.macs <= MOST_START_MACS)
    most = next(within, _PICTURES[-1])
    return min(each, max(most // parts, _PICTURES_OF_PART))


def start_macs(workload: Training, batch: int, parts: int = 1) -> int:
    """Count the forward multiplications of what a network's trials start from.

    Each of its pictures is computed once an update; of a batch whose samples matter to each other
    in nothing, and of which one alone has a gradient, that one.
    """
    pictures = 1 if _is_alone(workload) else parts * pictures_of(workload, batch, parts)
    return UPDATES * pictures * workload.macs


def is_too_long(workload: Training, batch: int, parts: int = 1) -> bool:
    """Tell whether what a network's trials start from takes too long to compute."""
    most = MOST_DROPPED_MACS if has_dropout(workload.network) else MOST_START_MACS
    return start_macs(workload, batch, parts) > most


def _is_alone(workload: Training) -> bool:
    return has_dropout(workload.network) and not couples_samples(workload.network)


def start_s(workload: Training, batch: int, parts: int = 1) -> float:
    """Guess how long it takes to compute what a network's trials start from."""
    computing_s = 0.0
    if not is_too_long(workload, batch, parts):
        computing_s = start_macs(workload, batch, parts) / _START_MACS_PER_S
    return computing_s + workload.parameters * _START_S_PER_PARAMETER


def _starts_s(plan: Plan) -> float:
    found = {}
    for cell in plan.cells:
        workload = plugins.workload(cell.workload, cell.factors)
        if framework_info(cell.adapter).proves and isinstance(workload, Training):
            batch, parts = cell.scale.batch_per_step, norm_parts_of(workload, cell)
            found[cell.workload, cell.factors.get("sequence"), batch, parts] = start_s(
                workload, batch, parts
            )
    return sum(found.values())


def _untimed_s(plan: Plan, cell: Cell, *, has_begun: bool) -> float:
    """Estimate a cell's cold trial and probe, before the first block, and what divides its step."""
    info = framework_info(cell.adapter)
    is_trained = isinstance(plugins.workload(cell.workload, cell.factors), Training)
    probe_s = _start_s(plan, cell) if info.has_probe and is_trained and not has_begun else 0.0
    if not has_begun and cell.factors["compile"] and cell.factors["compile_cache"] == "warm":
        probe_s += cell.start_up_s + _compile_s(cell, "cold")  # of the trial that fills its cache
    is_divided = info.attributes and is_trained and cell.scale.devices == 1
    return probe_s + (_start_s(plan, cell) + _DIVIDED_S if is_divided else 0.0)


def _start_s(plan: Plan, cell: Cell) -> float:
    compiling = _compile_s(cell, cell.factors["compile_cache"]) if cell.factors["compile"] else 0.0
    return cell.start_up_s + (plan.platform.start_up or 0.0) + compiling + _step_s(plan, cell)


def _compile_s(cell: Cell, compile_cache: str) -> float:
    first, each = _COMPILE_S[compile_cache]
    return first + each * _layers(cell.workload)


@cache
def _layers(workload: str) -> int:
    """Count the layers of a network; of anything else, one."""
    network = getattr(plugins.workload(workload), "network", None)
    return 1 if network is None else len(count(network).shapes)


def _guess(plan: Plan, cell: Cell) -> float:
    step_s, start_s = _step_s(plan, cell), _start_s(plan, cell)
    spans = (plan.measure.warmup, plan.measure.until)
    if cell.content is not None and cell.macs is None:
        return start_s + sum(_epochs_s(span, cell) for span in spans)
    return start_s + sum(_span_s(span, step_s) for span in spans)


def _settling_s(plan: Plan, cell: Cell) -> float:
    """Estimate what the turns of a trial take beyond what they measure."""
    measure, step_s = plan.measure, _step_s(plan, cell)
    planned = rounds(measure.until, turn_s=measure.turn_s, steps_s=[step_s])
    each_s = min(SETTLING_S, _span_s(measure.until, step_s) / planned.count)
    return planned.count * max(each_s, (SETTLING_WINDOWS + 1) * step_s)


def _epochs_s(span: Span, cell: Cell) -> float:
    """Estimate the time of whole epochs: where reading is the work, a span ends with one."""
    samples: int = cell.factors["samples"]
    steps = ceil(samples / cell.scale.batch_per_step)
    each = samples * CONTENTS[str(cell.content)].median_bytes / _READ_BYTES
    each += steps * (cell.factors["compute_ms"] or 0) / 1e3
    wanted = span.seconds / each if span.seconds is not None else (span.steps or 0) / steps
    return max(1, ceil(wanted)) * each


def _span_s(span: Span, step_s: float) -> float:
    if span.seconds is not None:
        return max(span.seconds, step_s)
    return (span.steps or 0) * step_s


def _step_s(plan: Plan, cell: Cell) -> float:
    if cell.macs is None:
        return 0.0
    operations = OPERATIONS_PER_MAC * PASSES * cell.macs
    if cell.factors["device"] == "gpu":
        return operations * cell.scale.batch_per_device / _GPU_FLOPS
    # The devices of a rank on CPUs are logical: they share the rank's.
    cpus = plan.platform.offers()["cpus"] or 1
    share = min(cpus // cell.scale.ranks_per_node, cell.factors["threads"] or cpus)
    return operations * cell.scale.batch_per_rank / (_CPU_FLOPS * max(1, share))
