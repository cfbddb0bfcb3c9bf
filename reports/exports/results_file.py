"""The content of ``results.json``: what a page says of its cells, as typed values.

``results.schema.json`` beside this module describes it for other languages; ``results_schema.py``
generates that from these types, so the two cannot drift. A change of a field's meaning or name
raises ``VERSION``; a new field does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis.context.absolute_paths import without_place, without_places
from harness.analysis.differences import host_facts
from harness.analysis.evidence import Evidence
from harness.analysis.limits.holding_back import Limit, limits
from harness.analysis.limits.words import sentence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.errors import DamagedFile, RunError
from harness.sections.contract.columns import trial_place
from harness.store.contained import Contained
from harness.store.json_text import json_text
from harness.store.records import Hole, RunInfo
from harness.verdicts.results import CellResult, Comparison, Estimate, TrialResult
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
class HeldBack:
    """What holds a cell back."""

    by: str
    """compute-, memory-, kernel-, host-, input-, storage-, exchange- or harness-bound, no single
    cause, or not known."""
    words: str
    """The same in a sentence, with its figures."""
    shares: Mapping[str, float]
    """Of its step, by cause: computing, memory, kernels, operations, host gaps, waiting for input,
    exchange."""


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
    held_back: HeldBack | None = None
    """None where nobody looked: of several runs together, and of what trains no network."""


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


def summary(results: Results, evidence: Evidence | None = None) -> Summary:
    """Say the answer, the warnings and the rankings as values."""
    held = limits(results, evidence or Evidence())
    told = answer(results, held)
    said = Summary(
        version=VERSION,
        title=results.title,
        question=told.question,
        answers=tuple(WorkloadAnswer(workload or None, text) for workload, text in told.sentences),
        basis=told.basis,
        cards=told.cards,
        warnings=told.warnings,
        ranking=tuple(line for ranking in told.rankings for line in _lines(ranking, held)),
    )
    shown: Summary = without_places(said)
    return shown


def results_file(results: Results, evidence: Evidence | None = None) -> ResultsFile:
    """Give results as a program outside reads them, which may be on any machine."""
    found = ResultsFile(
        **vars(summary(results, evidence)),
        runs=tuple(map(_travelling_run, results.runs)),
        cells=tuple(map(_travelling_cell, results.cells)),
        holes=results.holes,
        varied=results.varied,
    )
    shown: ResultsFile = without_places(found)
    return shown


def results_text(results: Results, evidence: Evidence | None = None) -> str:
    """Write results as the text of a results.json."""
    return json_text(results_file(results, evidence)) + "\n"


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


def _travelling_run(run: RunInfo) -> RunInfo:
    return replace(
        run, directory=without_place(run.directory), provenance=host_facts(run.provenance)
    )


def _travelling_cell(cell: CellResult) -> CellResult:
    def moved(trial: TrialResult) -> TrialResult:
        return replace(trial, directory=trial_place(cell, trial))

    return replace(cell, trials=tuple(map(moved, cell.trials)))


def _lines(ranking: Ranking, held: Mapping[str, Limit]) -> Iterator[RankedCell]:
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
            held_back=_held_back(held.get(cell.key)),
        )


def _held_back(of: Limit | None) -> HeldBack | None:
    return None if of is None else HeldBack(of.verdict, sentence(of), of.shares)
