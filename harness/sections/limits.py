"""The section of what holds each cell back: its step by cause, and a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.analysis.evidence import LIMITS, Evidence
from harness.analysis.floors.layer_times import LayerKey, keys_of_network
from harness.analysis.limits.holding_back import SINGLE, Limit, limits
from harness.analysis.limits.words import CAUSES, RATES, UNMARKED, by_cause, sentence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import (
    Block,
    Brief,
    Chart,
    Facts,
    Fold,
    Gist,
    Note,
    Sheet,
    Stacks,
)
from harness.sections.contract.section import Section
from harness.store.record_readers.ceilings import LAYER
from harness.units import counted

_COLUMNS = (
    Column("cell", "cell", "name"),
    Column("verdict", "held back by"),
    Column("cause", "part of the step"),
    Column("share", "of the step", "share"),
    Column("seconds", "time", "seconds"),
)
_CEILINGS = (
    Column("kernel", "kernel", "name"),
    Column("framework", "framework", "name"),
    Column("device", "device"),
    Column("precision", "precision"),
    Column("threads", "threads", "count"),
    Column("reached", "at most", "number"),
    Column("unit", "unit"),
    Column("measured_in", "measured", "path"),
)
_ALONE = (
    Column("layer", "layer", "name"),
    Column("passes", "pass"),
    Column("framework", "framework", "name"),
    Column("device", "device"),
    Column("batch", "batch", "count"),
    Column("precision", "precision"),
    Column("threads", "threads", "count"),
    Column("seconds", "at least", "seconds"),
    Column("measured_in", "measured", "path"),
)
_HOW = (
    "A step is divided among what its multiplications and its memory need at the most that was "
    "measured on this machine, what operations take beyond that, gaps in which nothing ran, "
    "exchange between ranks, and waiting. The largest part names what holds a cell back, if it is "
    f"more than {SINGLE:.0%} and no smaller than what is not known."
).replace("%", " %")


def _rows(name: str, of: Limit) -> Iterator[tuple[str, str, str, float, float]]:
    for cause, share in by_cause(of):
        yield name, of.verdict, cause, share, share * of.anatomy.step_s


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = limits(results, evidence)
    named = [(results.names[one.cell.run, key], one) for key, one in found.items()]
    if not named:
        return
    sentences = tuple((name, f"{sentence(one)}.") for name, one in named)
    rows = tuple(row for name, one in named for row in _rows(name, one))
    parts = {name: {row[2]: row[3] for row in _rows(name, one)} for name, one in named}
    kinds = {kind for pieces in parts.values() for kind in pieces}
    order = [kind for kind in (*CAUSES.values(), UNMARKED) if kind in kinds]
    bars = tuple(
        (name, tuple((kind, pieces.get(kind, 0.0)) for kind in order))
        for name, pieces in parts.items()
    )
    verdicts = Counter(one.verdict for _, one in named).most_common()
    said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts)
    yield Gist(f"{said}, of {counted(len(named), 'cell')}")
    yield Note(_HOW)
    yield Brief("What holds each cell back:", tuple(f"{name}: {text}" for name, text in sentences))
    yield Facts(sentences, is_prose=True)
    yield Chart(Stacks(bars, "share"), Table("limits", "What holds each cell back", _COLUMNS, rows))
    ceilings = tuple(
        (
            one.reached.kernel,
            one.under.framework,
            one.under.device,
            one.under.precision,
            one.under.threads,
            one.reached.per_s / 1e9,
            RATES[one.reached.unit],
            one.measured_in,
        )
        for one in evidence.ceilings or ()
        if one.reached.unit in RATES
    )
    reached = Table("ceilings", "What kernels reached at most", _CEILINGS, ceilings)
    sheets = [Sheet(reached)]
    if alone := tuple(_alone(results, evidence)):
        sheets.append(Sheet(Table("alone", "What layers needed alone", _ALONE, alone)))
    yield Fold("What kernels reached at most on this machine", tuple(sheets), is_printed=True)


def _alone(results: Results, evidence: Evidence) -> Iterator[tuple[object, ...]]:
    """List what each framework needed for each layer alone, by the layer's first name here."""
    named: dict[str, tuple[str, LayerKey]] = {}
    for cell in results.cells:
        for (path, _), key in keys_of_network(cell).items():
            named.setdefault(key.words, (f"{cell.workload}/{path}", key))
    for one in evidence.ceilings or ():
        if one.reached.unit == LAYER and one.reached.kernel in named:
            layer, key = named[one.reached.kernel]
            yield (
                layer,
                key.passes,
                one.under.framework,
                key.device,
                key.batch,
                key.precision,
                key.threads,
                1 / one.reached.per_s,
                one.measured_in,
            )


SECTION = Section(
    "What holds each cell back",
    150,
    _blocks,
    contents="Held back by",
    is_detail=True,
    needs=LIMITS,
)
