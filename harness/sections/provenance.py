"""The section of where the numbers come from: runs, machines, protocol, software."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis import numbers
from harness.analysis.context.absolute_paths import without_place
from harness.analysis.differences import flatten, host_facts
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import machine_name
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Facts, Fold, Gist, Sheet
from harness.sections.contract.section import Section
from harness.store.records import RunInfo
from harness.units import listed

_COLUMNS = (
    Column("run", "run", "name"),
    Column("machine", "machine", "name"),
    Column("started", "started"),
    Column("seed", "seed"),
    Column("directory", "directory"),
)


def _runs(results: Results) -> Table:
    rows = tuple(
        (
            run.name,
            machine_name(run),
            numbers.moment(run.started_wall_ns),
            str(run.seed),
            without_place(run.directory),
        )
        for run in results.runs
    )
    return Table("runs", "Runs behind this page", _COLUMNS, rows)


def _facts(run: RunInfo, of_run: str) -> Iterator[Fold]:
    """List what is known about machine, software and protocol of a run."""
    for title, facts in (
        ("Machine", run.platform),
        ("Host", host_facts(run.provenance)),
        ("Protocol", run.measure),
        ("Environments", run.environments),
    ):
        items = tuple(flatten(facts).items())
        if facts:
            detail = f"{len(items)} facts"
            yield Fold(title + of_run, (Facts(items),), detail, is_printed=True)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    started = [f"{run.name}, {numbers.moment(run.started_wall_ns)}" for run in results.runs]
    yield Gist(listed(started, between="; "))
    yield Sheet(_runs(results))
    for run in results.runs:
        yield from _facts(run, f" of {run.name}" if len(results.runs) > 1 else "")


SECTION = Section("Where the numbers come from", 1600, _blocks, contents="Sources")
