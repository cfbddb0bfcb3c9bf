"""Find the published figure closest to a cell's configuration: is this number normal?

A figure informs and never judges, and is never called the same: no source states everything. It is
compared only with a cell of the same network family, kind of processor, number of devices and class
of precision; everything else that differs, or that the source does not state, is listed beside the
ratio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import Any

from harness.analysis import numbers
from harness.analysis.context.published_figures import HOW, VERSION, Figure, how, own, published
from harness.analysis.differences import flatten
from harness.analysis.results import Results
from harness.store.json_text import json_text
from harness.store.records import RunInfo
from harness.toml.values import shown
from harness.verdicts.results import CellResult, Interval, inverse, scaled
from harness.worker.network.workload import TOKENS

OWN = "own run "
"""How the source of a figure begins that is not published."""


@dataclass(frozen=True)
class Match:
    """The figure closest to a cell, with everything in which the two differ."""

    figure: Figure
    share: float
    """The cell's speed over the figure's; above 1 is faster."""
    interval: Interval | None
    """Of the share, as far as the cell's own trials scatter: a figure states no interval."""
    differences: tuple[str, ...]

    def __str__(self) -> str:
        mark = "" if self.figure.kind == "measured" else " †"
        value = f"{numbers.number(self.figure.value)} {self.figure.unit}{mark}"
        source = self.figure.source
        which = source if source.startswith(OWN) else "the nearest published figure"
        apart = ", ".join(self.differences)
        than = f"differs: {apart}" if apart else "nothing that both state differs"
        return f"{self._percent()} of {which}, {value} ({than})"

    def _percent(self) -> str:
        told = f"{self.share * 100:.0f} %"
        if self.interval is None:
            return f"{told} (no interval)"
        return f"{told} [{self.interval.low * 100:.0f}, {self.interval.high * 100:.0f}]"


_FAMILIES = {
    "resnet50-v1": "resnet50",
    "alexnet-caffe": "alexnet",
    "alexnet-chien": "alexnet",
    "cosmoflow-lee": "cosmoflow",
}
_HOW_WEIGHT = 1.0
_REDUCED = ("fp16", "bf16", "bf16-pure", "mixed")
_TOKENS_PER_S = f"{TOKENS}/s"
_UNIT = re.compile(rf"^(images|samples|sequences|traces|volumes|{TOKENS})/s$")
"""Of one network these all mean its samples; figures per device or per node match nothing."""


def nearest(cell: CellResult, run: RunInfo, figures: Sequence[Figure]) -> Match | None:
    """Find the figure that differs least from a cell; None where nothing is comparable."""
    best: tuple[float, Match] | None = None
    machine = _processor_words(cell, run)
    for figure in figures:
        if not _comparable(cell, figure, machine):
            continue
        share = _share(cell, figure)
        if share is None:
            continue
        differences = list(_differences(cell, run, figure))
        weight = sum(one for one, _ in differences)
        if best is None or weight < best[0]:
            apart = tuple(text for _, text in differences)
            best = weight, Match(figure, *share, apart)
    return best[1] if best else None


def normal(results: Results) -> dict[tuple[str, str], Match]:
    """Find the nearest figure, published or one's own, of every cell that has one.

    What a model said is held against nothing that was measured.
    """
    if results.is_simulated:
        return {}
    runs = {run.name: run for run in results.runs}
    figures = (*published(), *own())
    found = {}
    for cell in results.cells:
        if cell.run not in runs or cell.refusal:
            continue
        match = nearest(cell, runs[cell.run], figures)
        if match is not None:
            found[cell.run, cell.key] = match
    return found


def _share(cell: CellResult, figure: Figure) -> tuple[float, Interval | None] | None:
    """Give a cell's speed over a figure's, and the interval as far as the cell has one."""
    if figure.metric == "rate" and cell.rate is not None and _UNIT.match(figure.unit):
        value = figure.value
        if cell.unit == TOKENS and figure.unit != _TOKENS_PER_S:
            value *= cell.factors["sequence"]
        within = cell.rate.interval
        return cell.rate.value / value, within and scaled(within, 1 / value)
    if figure.metric == "epoch" and cell.epoch_s is not None and figure.unit == "s":
        within = cell.epoch_s.interval
        return figure.value / cell.epoch_s.value, within and scaled(inverse(within), figure.value)
    return None


def _comparable(cell: CellResult, figure: Figure, machine: frozenset[str]) -> bool:
    precision = cell.factors.get("precision")
    return (
        figure.model == _FAMILIES.get(cell.workload, cell.workload)
        and figure.processor is not None
        and _words(figure.processor) <= machine
        and figure.device == cell.factors.get("device", "cpu")
        and figure.devices == devices(cell)
        and (figure.sequence is None) == (cell.unit != TOKENS)
        and figure.sequence in (None, cell.factors.get("sequence"))
        and (
            figure.precision is None
            or precision is None
            or (figure.precision in _REDUCED) == (precision in _REDUCED)
        )
    )


def devices(cell: CellResult) -> int:
    """Count the devices of a cell; on CPUs a node counts as one."""
    is_cpu = cell.factors.get("device", "cpu") == "cpu"
    return cell.scale.nodes if is_cpu else cell.scale.devices


def _differences(cell: CellResult, run: RunInfo, figure: Figure) -> Iterator[tuple[float, str]]:
    """List what differs between a figure and a cell, with weights; the figure's side is named.

    What a figure does not state weighs less than what it states otherwise. The workload weighs
    most, then the framework; a batch weighs by how often it would have to be doubled.
    """
    if figure.workload is None:
        yield 1.0, f"variant {figure.variant or 'not stated'}"
    elif figure.workload != cell.workload:
        yield 8.0, f"variant {figure.workload}"
    framework = cell.framework.partition("@")[0]
    if figure.framework != framework:
        yield 4.0, f"framework {figure.framework or 'not stated'}"
    elif figure.framework_version != _version(cell):
        yield 0.5, f"version {figure.framework_version or 'not stated'}"
    if figure.machine != _machine(run):
        yield 0.5, f"machine {figure.machine}"
    stated, ours = figure.batch, cell.scale.batch_per_device
    if stated is None and figure.global_batch is not None:
        stated = figure.global_batch // figure.devices
    if stated is None:
        yield 1.0, "batch not stated"
    elif stated != ours:
        yield abs(log2(stated / ours)), f"batch {stated}"
    pairs = (
        ("precision", figure.precision, cell.factors.get("precision"), 2.0),
        ("layout", figure.layout, cell.factors.get("layout"), 0.5),
        ("loader", figure.loader, cell.factors.get("input"), 1.0),
    )
    for name, stated_value, value, weight in pairs:
        if stated_value is None:
            yield weight / 2, f"{name} not stated"
        elif stated_value != value:
            yield weight, f"{stated_value} {name}"
    for name, value in _how(cell).items():
        stated_value = getattr(figure, name)
        if stated_value is None:
            if value != _USUAL[name]:
                yield _HOW_WEIGHT / 2, f"{name} not stated"
        elif stated_value != value:
            yield _HOW_WEIGHT, how(name, stated_value)
    if figure.note:
        yield 0.0, figure.note


_USUAL = {"compile": False, "recompute": False, "attention": None, "accumulate": 1}
"""How a step is computed unless asked otherwise; silence about that is no difference."""


def _how(cell: CellResult) -> dict[str, Any]:
    """Say how a cell's step is computed; attention as it ran, where no way was asked for."""
    asked = {name: cell.factors.get(name) for name in HOW}
    told = {name: _USUAL[name] if value is None else value for name, value in asked.items()}
    return {**told, "attention": told["attention"] or cell.ran.facts.get("attention")}


def _version(cell: CellResult) -> str | None:
    name = cell.framework.partition("@")[0]
    return cell.versions.get(name)


def _machine(run: RunInfo) -> str:
    return str(run.platform.get("title") or run.platform.get("name") or run.name)


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def processor(cell: CellResult, run: RunInfo) -> str:
    """Name the GPU or CPU that a cell ran on; what was observed comes before what is claimed."""
    device = cell.factors.get("device", "cpu")
    facts = flatten({"observed": run.provenance, "claimed": run.platform})
    wanted = (
        r"(gpus?|accelerators?)\.\d*\.?(name|model)$"
        if device == "gpu"
        else (r"(cpu_model|cpu\.model|node\.cpu)$")
    )
    named = [text for key, text in facts.items() if re.search(wanted, key) and text != "–"]
    return named[0] if named else ""


def _processor_words(cell: CellResult, run: RunInfo) -> frozenset[str]:
    return _words(processor(cell, run)) | _words(_machine(run))


def from_cells(cells: Sequence[CellResult], run: RunInfo, source: str) -> str:
    """Write a run's figures in the format of the published ones."""
    lines = [f"version = {VERSION}", f"source = {_toml(source)}"]
    for cell in cells:
        if cell.rate is None or cell.refusal:
            continue
        values: dict[str, Any] = {
            "machine": _machine(run),
            "processor": processor(cell, run) or None,
            "device": cell.factors.get("device", "cpu"),
            "devices": devices(cell),
            "nodes": cell.scale.nodes,
            "framework": cell.framework.partition("@")[0],
            "framework_version": _version(cell),
            "model": _FAMILIES.get(cell.workload, cell.workload),
            "workload": cell.workload,
            "sequence": cell.factors["sequence"] if cell.unit == TOKENS else None,
            "batch": cell.scale.batch_per_device,
            "global_batch": cell.scale.batch_per_step if cell.scale.is_strong else None,
            "precision": cell.factors.get("precision"),
            "layout": cell.factors.get("layout"),
            "loader": cell.factors.get("input"),
            **_how(cell),
            "value": float(f"{cell.rate.value:.5g}"),
            "unit": cell.rate.unit,
        }
        lines += ["", "[[figure]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json_text(value)  # a text of TOML as well
    return shown(value)
