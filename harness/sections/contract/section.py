"""Sections: what a report says besides its answer and its rankings, one plug-in file a section.

A section is a module of a provider package of the group ``bakeoff.sections``. Its name is the
module's, with dashes; its constant ``SECTION`` says what it needs and how its blocks are made. One
that does not import, or fails while it is made, is named with its reason, and all others are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

from harness import plugins
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Table, family
from harness.errors import UsageError, nearest
from harness.plugins import OURS, Entry
from harness.sections.contract.blocks import Block, Brief, Gist, on_page, tables

RANKINGS = 100
"""Where a page has its rankings: sections of a lower order stand above them."""
EVERY_CELL = 200
"""Where a page has its table of cells: sections of a higher order are details."""


@dataclass(frozen=True)
class Section:
    """One section: its heading, its place, what it needs, and how its blocks are made."""

    title: str
    order: int
    """Sections stand in this order on a page and in a terminal."""
    make: Callable[[Results, Evidence], Iterable[Block]]
    contents: str = ""
    """What the table of contents calls it; its title where this is empty."""
    needs: frozenset[str] = frozenset()
    """What has to be gathered for it: fields of Evidence. Without them it is not made."""
    is_detail: bool = False
    """Whether a page of many cells folds it; all below the table of cells are."""


@dataclass(frozen=True)
class Made:
    """A section with its blocks; its name is its anchor on a page."""

    name: str
    section: Section
    blocks: tuple[Block, ...]

    @property
    def contents(self) -> str:
        """What the table of contents calls it."""
        return self.section.contents or self.section.title

    @property
    def is_on_page(self) -> bool:
        """Whether a page has anything to show of it."""
        return any(map(on_page, self.blocks))

    @property
    def is_detail(self) -> bool:
        """Whether a page of many cells folds it."""
        return self.section.is_detail or self.section.order > EVERY_CELL

    @property
    def gist(self) -> str:
        """What it finds, in a line; empty where it says nothing so short."""
        return next((one.text for one in self.blocks if isinstance(one, Gist)), "")

    @property
    def briefs(self) -> tuple[Brief, ...]:
        """What a terminal says of it."""
        return tuple(one for one in self.blocks if isinstance(one, Brief) and one.lines)


@dataclass(frozen=True)
class Sections:
    """The sections of some results in their order, and those that could not be made."""

    made: tuple[Made, ...]
    missing: tuple[str, ...]
    """Each with its reason."""


def needs() -> frozenset[str]:
    """Name all that the installed sections want gathered."""
    found, _ = _installed()
    return frozenset().union(*(section.needs for _, section in found))


def sections(results: Results, evidence: Evidence | None = None) -> Sections:
    """Make every section whose needs were gathered."""
    found, missing = _installed()
    evidence = evidence or Evidence()
    made = []
    for entry, section in found:
        if not section.needs <= evidence.gathered:
            continue
        try:
            blocks = tuple(section.make(results, evidence))
        except Exception as error:
            if entry.origin == OURS:
                raise
            missing.append(_told(entry, f"{type(error).__name__}: {error}"))
        else:
            made.append(Made(entry.name, section, blocks))
    return Sections(tuple(made), tuple(missing))


def table(of: Sections, name: str) -> Table | None:
    """Give a section's table by its name; of two alike the first."""
    return next((one for one in _tables(of) if one.name == name), None)


def refuse_table(of: Sections, name: str) -> UsageError:
    """Say which tables of these results have any rows."""
    every = {one.name: bool(one.rows) for one in _tables(of)}
    listed = ", ".join(_families([name for name, has_rows in every.items() if has_rows]))
    unknown = f"no table is called '{name}'.{nearest(name, every)}"
    problem = f"the table '{name}' has no rows here." if name in every else unknown
    lines = [problem, f"These have rows: {listed}."]
    return UsageError("\n    ".join((*lines, *of.missing)))


def _families(names: Sequence[str]) -> Iterator[str]:
    """Name tables that differ by a number alone together: ``timeline-1 … timeline-15``."""
    for _, group in groupby(names, family):
        alike = list(group)
        yield alike[0] if len(alike) == 1 else f"{alike[0]} … {alike[-1]}"


def _tables(of: Sections) -> Iterable[Table]:
    return (one for made in of.made for one in tables(made.blocks))


def _installed() -> tuple[list[tuple[Entry, Section]], list[str]]:
    """Import all sections; those that cannot be used come as sentences."""
    found: list[tuple[Entry, Section]] = []
    missing = []
    for entry, module in plugins.loaded("sections"):
        section = getattr(module, "SECTION", None)
        if not isinstance(section, Section):
            problem = entry.problem or f"{entry.module}.SECTION is no Section"
            missing.append(_told(entry, problem))
        elif problem := _unknown_needs(section):
            missing.append(_told(entry, problem))
        else:
            found.append((entry, section))
    return sorted(found, key=lambda one: (one[1].order, one[0].name)), missing


def _unknown_needs(section: Section) -> str:
    unknown = section.needs - {one.name for one in fields(Evidence)}
    return f"it needs {', '.join(sorted(unknown))}, which nothing gathers" if unknown else ""


def _told(entry: Entry, problem: str) -> str:
    return f"Section {entry.name} of {entry.origin} is missing: {problem}."
