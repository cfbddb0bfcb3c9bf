"""The content of ``results.json``: what a page says of its cells, as typed values.

``results.schema.json`` beside this module describes it for other languages; ``results_schema.py``
generates that from these types, so the two cannot drift. A change of a field's meaning or name
raises ``VERSION``; a new field does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.errors import DamagedFile, RunError
from harness.store.contained import Contained
from harness.store.json_text import json_text
from harness.store.records import Hole, RunInfo
from harness.verdicts.results import CellResult, Comparison, Estimate
from harness.worker.redaction.redact import redact_values
from reports.text.answer import answer
from reports.text.cards import Card

VERSION = 1  # 1: first


@dataclass(frozen=True)
class WorkloadAnswer:
    """The answer for one workload, in a sentence."""

    workload: str | None
    """None where there is only one."""
    answer: str


@dataclass(frozen=True)
class RankedCell:
    """One line of a ranking; ``run`` and ``key`` find the cell with everything known about it."""

    workload: str
    place: int
    """1 is the fastest of its workload."""
    cell: str
    """What the page calls it."""
    machine: str
    run: str
    key: str
    rate: Estimate | None
    """Units of work per second over all ranks."""
    comparison: Comparison | None
    """None where nothing was compared."""
    gate: str
    """equivalent, named difference, differs, not checked, nothing to check."""


@dataclass(frozen=True)
class Summary:
    """The first screen of a page, and what ``bakeoff show --json`` prints."""

    version: int
    title: str
    question: str
    answers: tuple[WorkloadAnswer, ...]
    basis: str
    """On which machine cells were compared, in how many blocks and how surely; may be empty."""
    cards: tuple[Card, ...]
    warnings: tuple[str, ...]
    """The gravest first."""
    ranking: tuple[RankedCell, ...]
    """By workload, fastest first; only cells that may be ranked."""


@dataclass(frozen=True)
class ResultsFile(Summary):
    """Everything that is known about the cells of one or more runs."""

    runs: tuple[RunInfo, ...]
    cells: tuple[CellResult, ...]
    """By workload, fastest first; cells without a rate last."""
    holes: tuple[Hole, ...]
    varied: tuple[str, ...]
    """The factors in which these cells differ."""


def summary(results: Results) -> Summary:
    """Say the answer, the warnings and the rankings as values."""
    told = answer(results)
    return Summary(
        version=VERSION,
        title=results.title,
        question=told.question,
        answers=tuple(WorkloadAnswer(workload or None, text) for workload, text in told.sentences),
        basis=told.basis,
        cards=told.cards,
        warnings=told.warnings,
        ranking=tuple(line for ranking in told.rankings for line in _lines(ranking)),
    )


def results_file(results: Results) -> ResultsFile:
    """Give results as a program outside reads them."""
    return ResultsFile(
        **vars(summary(results)),
        runs=results.runs,
        cells=results.cells,
        holes=results.holes,
        varied=results.varied,
    )


def results_text(results: Results) -> str:
    """Write results as the text of a results.json."""
    return json_text(results_file(results)) + "\n"


def read_results_file(path: Path) -> ResultsFile:
    """Read a ``results.json`` back; refuse what is none, and one of another version."""
    files = Contained(path.parent)
    found = files.read_json(path)
    from pydantic import TypeAdapter, ValidationError  # slow to import, and writing needs it not

    version = found.get("version") if isinstance(found, dict) else None
    if isinstance(version, int) and version != VERSION:
        raise RunError(
            f"{path} has version {version}; this bakeoff reads version {VERSION}. "
            "`bakeoff report` of its runs writes it anew."
        )
    try:
        read: ResultsFile = redact_values(TypeAdapter(ResultsFile).validate_python(found))
    except ValidationError as faults:
        first = faults.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise DamagedFile(f"{path} is no results.json: {where}: {first['msg']}") from None
    return read


def _lines(ranking: Ranking) -> Iterator[RankedCell]:
    for place, cell in enumerate(ranking.cells, 1):
        yield RankedCell(
            workload=ranking.workload,
            place=place,
            cell=ranking.name(cell),
            machine=ranking.machine(cell),
            run=cell.run,
            key=cell.key,
            rate=cell.rate,
            comparison=cell.comparison,
            gate=cell.gate.state,
        )
