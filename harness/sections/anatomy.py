"""The section of what a step is made of: phases, layers, kinds of operations, and idle time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis import numbers
from harness.analysis.effects.effects import FEWEST_CELLS
from harness.analysis.evidence import LIMITS, Evidence
from harness.analysis.explain.words import operations_words
from harness.analysis.limits.anatomy import PHASES, Anatomy
from harness.analysis.limits.holding_back import limits
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Chart, Facts, Fold, Gist, Note, Sheet, Stacks
from harness.sections.contract.section import Section
from harness.stats.estimate import median
from harness.units import counted

_PHASES = (
    Column("cell", "cell", "name"),
    Column("phase", "part of the step"),
    Column("share", "of the step", "share"),
    Column("error", "its standard error", "share"),
    Column("seconds", "time", "seconds"),
)
_SITES = (
    Column("cell", "cell", "name"),
    Column("layer", "layer", "name"),
    Column("phase", "pass"),
    Column("share", "of the step", "share"),
    Column("seconds", "time", "seconds"),
    Column("operations", "operations", "long"),
)
_KINDS = (
    Column("cell", "cell", "name"),
    Column("kind", "operation", "name"),
    Column("times", "times a step", "number"),
    Column("share", "of the step", "share"),
    Column("seconds", "time", "seconds"),
)
_IDLE = (
    Column("cell", "cell", "name"),
    Column("cause", "nothing ran"),
    Column("share", "of the step", "share"),
    Column("seconds", "time", "seconds"),
)
_ON_PAGE, _OF_MANY = 12, 6
"""Layers, and kinds of operations, that a page shows of a cell and of each of many; an export has
all."""
_HOW = (
    "The shares of traced steps, times the step as it was timed. “other” carries no layer's mark; "
    "in “host gaps” no operation ran."
)
_NAMED = 2
_REST = "kinds that the trace did not list"


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = limits(results, evidence)
    named = [(results.names[one.cell.run, key], one.anatomy) for key, one in found.items()]
    divided = [(name, one) for name, one in named if not one.undivided]
    if not divided:
        return
    yield _gist([one for _, one in divided])
    yield Note(_HOW)
    bars = tuple(
        (
            name,
            tuple(
                (phase, one.phases[phase] * one.step_s) for phase in PHASES if phase in one.phases
            ),
        )
        for name, one in divided
    )
    rows = tuple(row for name, one in divided for row in _phases(name, one))
    table = Table("anatomy", "What each step is made of", _PHASES, rows)
    yield Chart(Stacks(bars, "seconds"), table)
    most = _ON_PAGE if len(divided) < FEWEST_CELLS else _OF_MANY
    for kind, title, columns, make in (
        ("anatomy-layers", "Layers", _SITES, _sites),
        ("anatomy-operations", "Kinds of operations", _KINDS, _kinds),
        ("anatomy-idle", "When nothing ran", _IDLE, _idle),
    ):
        every = [list(make(name, one)) for name, one in divided]
        shown = tuple(row for rows_of in every for row in rows_of[:most])
        whole = Table(kind, title, columns, tuple(row for rows_of in every for row in rows_of))
        yield Fold(title, (Sheet(whole, filters=("cell",), rows_on_page=shown),))
    doubts = tuple(
        (name, f"{why}.")
        for name, one in named
        for why in filter(None, (one.traced, one.undivided, one.of_device))
    )
    yield Facts(doubts, is_prose=True)


def _gist(divided: Sequence[Anatomy]) -> Gist:
    """Name what takes most of a step, over all cells."""
    shares = {phase: median([one.phases.get(phase, 0.0) for one in divided]) for phase in PHASES}
    most = sorted(shares, key=lambda phase: -shares[phase])[:_NAMED]
    said = ", ".join(f"{phase} {numbers.share(shares[phase])}" for phase in most)
    return Gist(f"{said} of a step, medians of {counted(len(divided), 'cell')}")


def _phases(name: str, of: Anatomy) -> Iterator[tuple[object, ...]]:
    for phase, share in of.phases.items():
        yield name, phase, share, of.error.get(phase), share * of.step_s


def _sites(name: str, of: Anatomy) -> Iterator[tuple[object, ...]]:
    for one in of.sites:
        site, phase = one.key
        words = operations_words(one.operations) or None
        yield name, site or None, phase, one.share, one.share * of.step_s, words


def _kinds(name: str, of: Anatomy) -> Iterator[tuple[object, ...]]:
    for one in of.kinds:
        times = one.times or None
        yield name, one.name or _REST, times, one.share, one.share * of.step_s


def _idle(name: str, of: Anatomy) -> Iterator[tuple[object, ...]]:
    for cause, share in of.idle:
        yield name, cause, share, share * of.step_s


SECTION = Section(
    "What a step is made of",
    440,
    _blocks,
    contents="Anatomy",
    needs=LIMITS,
)
