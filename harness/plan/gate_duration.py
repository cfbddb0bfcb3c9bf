"""Say what of a cell the gate examines, and guess how long that takes where nothing is kept."""

from __future__ import annotations

from harness import plugins
from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.study.framework import framework_info
from harness.worker.network.rule import product
from harness.worker.network.shapes import parameter_shapes, sites
from harness.worker.network.workload import Training

# What the gate examines is at most so large; measured on 2 cores with torch and JAX.
_EXAMINED_PARAMETERS = 30e6
_LOWERED = ("device", "layout", "precision", "compile", "attention", "recompute")
_EXAMINATION_S_PER_PARAMETER = 8e-7
# By whether the cell compiles, which it does in float64 and as timed: torch's tinyvit, of some 18
# layers that learn, took 43 s.
_EXAMINATION_S, _EXAMINATION_S_PER_LAYER = {False: 8.0, True: 20.0}, {False: 0.05, True: 1.2}
# Ranks and feeds are examined by processes of their own, which start the framework: seconds of one
# on 2 cores, and of one more rank beside it; torch, JAX, TensorFlow and Keras took 7 to 15.
_PROCESS_S, _RANK_S = 10.0, 3.0
_RANKS_S_PER_PARAMETER = 4e-7
# Of a feed, the samples that are made, fed and compared for a rank are few; CosmoFlow's took 15 s.
_FED_SAMPLES, _FED_S_PER_NUMBER = 13, 1.4e-7
_FED = ("format", "reader", "shuffle", "decode")


def trains_on_files(cell: Cell) -> bool:
    """Whether the gate examines what a cell's network is fed."""
    return cell.content is not None and cell.macs is not None


def trains_together(cell: Cell) -> bool:
    """Whether the gate examines a cell's ranks, or devices of a rank, beside one alone."""
    is_several = cell.scale.ranks > 1 or has_several_devices(cell)
    exchanges = cell.factors.get("communicate") is not False
    return cell.strategy != "none" and is_several and exchanges


def has_several_devices(cell: Cell) -> bool:
    """Whether the devices of one rank train together."""
    return cell.scale.ranks == 1 and cell.scale.devices_per_rank > 1


def examination_s(cell: Cell, workload: Training) -> float:
    """Guess how long the gate takes for a cell, if nothing is kept of it."""
    found = _network_s(workload, compiles=bool(cell.factors["compile"]))
    found += _ranks_s(workload) if trains_together(cell) else 0.0
    return found + (_feed_s(cell, workload) if trains_on_files(cell) else 0.0)


def gate_s(plan: Plan) -> float:
    """Guess how long the gate takes for a plan: what cells have in common is examined once."""
    found: dict[tuple[object, ...], float] = {}
    for cell in plan.cells:
        workload = plugins.workload(cell.workload, cell.factors)
        if not isinstance(workload, Training) or plan.platform.is_simulated:
            continue
        own = (cell.workload, cell.factors.get("sequence"), cell.environment)
        lowered = tuple(cell.factors.get(name) for name in _LOWERED)
        found["network", *own, *lowered] = _network_s(
            workload, compiles=bool(cell.factors["compile"])
        )
        if trains_together(cell):
            found["ranks", *own, cell.strategy] = _ranks_s(workload)
        if trains_on_files(cell):
            how = tuple(cell.factors.get(name) for name in _FED)
            found["feed", *own, cell.content, cell.strategy, *how] = _feed_s(cell, workload)
    return sum(found.values())


def _network_s(workload: Training, *, compiles: bool) -> float:
    parameters = min(workload.parameters, _EXAMINED_PARAMETERS)
    learned = sum(bool(parameter_shapes(site)) for site in sites(workload.network))
    by_layer = learned * _EXAMINATION_S_PER_LAYER[compiles]
    return _EXAMINATION_S[compiles] + parameters * _EXAMINATION_S_PER_PARAMETER + by_layer


def _ranks_s(workload: Training) -> float:
    """Two ranks, then one alone, each in a process that starts the framework."""
    parameters = min(workload.parameters, _EXAMINED_PARAMETERS)
    return 2 * _PROCESS_S + _RANK_S + parameters * _RANKS_S_PER_PARAMETER


def _feed_s(cell: Cell, workload: Training) -> float:
    """Read the set; once more, where a shuffle of the reader's own is to come again alike."""
    reader = framework_info(cell.adapter).reader(str(cell.factors["reader"]))
    is_shuffled = cell.factors.get("shuffle") not in (None, "none")
    times = 2 if is_shuffled and cell.factors["format"] in reader.own_order else 1
    further = 1 if cell.scale.ranks > 1 else 0
    numbers = (1 + further) * _FED_SAMPLES * product(workload.network.input)
    return times * (_PROCESS_S + further * _RANK_S + numbers * _FED_S_PER_NUMBER)
