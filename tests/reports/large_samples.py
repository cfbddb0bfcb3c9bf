"""Large studies of every kind that a page has to stay short for, 180 cells each."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.store.record_readers.attribution import Attribution, Operation, Part
from harness.store.record_readers.ceilings import Ceiling, Conditions, Reached
from harness.verdicts.results import CellResult
from tests.reports import samples
from workloads.resnet50 import WORKLOAD

_LAYERS = [f"layer{stage}.{at}.conv{one}" for stage in (1, 2, 3) for at in (0, 1) for one in (1, 2)]
_OTHERS = (("", "update"), ("", "layout copy"), ("", "host gaps"), ("", "other"))
_STEPS = 6


def divided() -> tuple[Results, Evidence]:
    """Know of each cell its meters, what ran, and its step by layer."""
    return _known(samples.factorial())


def _known(here: Results) -> tuple[Results, Evidence]:
    exact = {"parameters": WORKLOAD.parameters, "macs": WORKLOAD.macs}
    cells = tuple(
        dataclasses.replace(samples.with_facts(samples.with_power(one)), **exact)
        for one in here.cells
    )
    attributions = {one.key: _attribution(one) for one in cells}
    known = tuple(
        Ceiling(
            Conditions(framework, "digest", "cpu", precision, None),
            Reached(kernel, unit, per_s, 2**25),
            "a run/cells/k/ceilings",
            1,
        )
        for framework in ("fw0", "fw1", "fw2")
        for precision in ("fp32", "bf16")
        for kernel, unit, per_s in (("gemm", "FLOP", 8e12), ("triad", "bytes", 1e11))
    )
    return dataclasses.replace(here, cells=cells), Evidence(
        attributions=attributions, ceilings=known
    )


def _attribution(of: CellResult) -> Attribution:
    """Trace a few steps, in which each layer has about its share."""
    draw = random.Random(of.key)
    sites = [
        *((layer, phase) for layer in _LAYERS for phase in ("forward", "backward")),
        *_OTHERS,
    ]
    weights = [draw.uniform(0.5, 2.0) for _ in sites]
    rows = [[weight * draw.gauss(1, 0.02) for weight in weights] for _ in range(_STEPS)]
    parts = tuple(
        Part(
            *site,
            tuple(row[at] / sum(row) for row in rows),
            (Operation(f"{site[1]}_kernel", "float32", "16x64x56x56", 1.0, 1.0),),
            0,
        )
        for at, site in enumerate(sites)
    )
    step_s = of.factors["batch"] / (of.rate.value if of.rate else 1.0)
    return Attribution("a trace", (step_s,) * _STEPS, parts)


def all_of_it() -> tuple[Results, Evidence]:
    """Three workloads, whose steps were divided, and of which some cells failed."""
    return _known(samples.with_failures(workloads()))


def workloads() -> Results:
    """Study three workloads, sixty cells each."""
    return _of_each(samples.factorial(3, 5, 2), ("resnet50", "alexnet", "tinycnn"))


def nine_workloads() -> Results:
    """Study nine workloads, twenty cells each."""
    return _of_each(samples.factorial(2, 5, 1), [f"network{number}" for number in range(1, 10)])


def _of_each(here: Results, names: Sequence[str]) -> Results:
    cells = tuple(
        dataclasses.replace(
            one,
            workload=workload,
            key=f"{workload}{one.key}",
            trials=tuple(
                dataclasses.replace(t, cell_key=f"{workload}{one.key}") for t in one.trials
            ),
        )
        for workload in names
        for one in here.cells
    )
    return dataclasses.replace(here, cells=cells, varied=("workload", *here.varied))
