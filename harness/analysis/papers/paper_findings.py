"""Compare the findings of papers that a study names with what its run measured.

A rate of one cell is the geometric mean of its counted trials, another quantity their median; of
two cells, it is taken of both trials of the same block, with the rates that are compared everywhere
else: where both took turns, those of a round beside each other. Which cells answer says
``finding_cells.py``; of several that are as good, the fastest. Where those that are meant have no
counted trial no other answers for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis import numbers
from harness.analysis.blocks.compare_cells import CONTENDED
from harness.analysis.blocks.paired_blocks import rates_beside
from harness.analysis.context import failures
from harness.analysis.evidence import Questions
from harness.analysis.papers import loss_agreement
from harness.analysis.papers.finding_cells import alone, is_taken, pairs, said
from harness.analysis.papers.finding_measures import (
    AGREEMENT,
    DIFFERENCE,
    MEASURES,
    PER_DEVICE,
    FindingMeasure,
    why_impossible,
)
from harness.analysis.results import Results
from harness.analysis.scaling.scaling import more_threads
from harness.stats import estimate
from harness.store.records import RunInfo
from harness.study.matrix import selection
from harness.verdicts.results import CellResult, TrialResult
from harness.verdicts.thresholds import SEVERITY

NO_CELL = "not measured: this run has no such cell"


@dataclass(frozen=True)
class Answer:
    """What was measured, in words and as numbers; without a value the words say why."""

    text: str
    of: str = ""
    over: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    n: int = 0
    beside_other_work: bool = False
    """Whether another program shared the cores of a trial that it is of."""
    cells: tuple[str, ...] = ()
    """The keys of those that it is of."""
    doubt: str = ""
    """The worst verdict of a trial that it is of, but for other work; empty if all are valid."""


@dataclass(frozen=True)
class PaperFinding:
    """A statement of a paper, beside what was measured here."""

    run: str
    claim: str
    question: str
    paper: str
    measure: str
    answer: Answer
    stand_in: str = ""
    """What its cells are, where they only stand for what is asked of."""

    @property
    def is_impossible(self) -> bool:
        """Tell whether its figure cannot be: then something slowed the baseline."""
        return bool(why_impossible(self.measure, self.answer.value))

    @property
    def measured(self) -> str:
        """What was measured, in words, and what speaks against it."""
        if why := why_impossible(self.measure, self.answer.value):
            return f"no answer: {why} ({self.answer.text})"
        before = ""
        if self.stand_in and self.answer.value is not None:
            before = f"of a stand-in, {self.stand_in}; "
        before += "beside other work; " if self.answer.beside_other_work else ""
        return before + self.answer.text + in_doubt(self.answer.doubt)


def in_doubt(verdict: str) -> str:
    """Say behind an answer what speaks against a trial that it is of."""
    return f"; the worst trial is called {verdict}" if verdict else ""


def findings(results: Results, questions: Questions) -> tuple[PaperFinding, ...]:
    """Answer what each run's study asks; the same question of several runs once a run."""
    return tuple(
        PaperFinding(
            run.name,
            asked.get("claim", ""),
            asked["question"],
            asked["paper"],
            asked.get("measure", "rate"),
            _answer(results, run, asked),
            asked.get("stand_in", ""),
        )
        for run in results.runs
        for asked in questions.get(run.name, ())
    )


def _answer(results: Results, run: RunInfo, asked: Mapping[str, Any]) -> Answer:
    cells = [one for one in results.cells if one.run == run.name]  # the fastest first
    meant = _meant(cells, asked)
    sides = next((one for one in meant if all(map(_answers, one))), None)
    if sides is None:
        return Answer(_missing(results, cells, asked, meant))
    ranked = [one for one in cells if not one.refusal]
    told = _told_of(results, MEASURES[asked.get("measure", "rate")], ranked, *sides)
    told = replace(told, cells=tuple(one.key for one in sides))
    if told.value is None:
        return told
    verdicts = {trial.verdict for one in sides for trial in _counted(one) if trial.verdict}
    doubt = max(verdicts - {"valid", CONTENDED}, key=SEVERITY.index, default="")
    return replace(told, beside_other_work=CONTENDED in verdicts, doubt=doubt)


def _meant(
    cells: Sequence[CellResult], asked: Mapping[str, Any]
) -> Sequence[tuple[CellResult, ...]]:
    """Give the cells that a finding means, each with the one that it is over, if any."""
    if asked.get("over") is None:
        return [(one,) for one in alone(cells, selection(asked["of"]))]
    return pairs(cells, selection(asked["of"]), selection(asked["over"]))


def _answers(cell: CellResult) -> bool:
    return not cell.refusal and bool(_counted(cell))


def _told_of(
    results: Results,
    measure: FindingMeasure,
    cells: Sequence[CellResult],
    of: CellResult,
    over: CellResult | None = None,
) -> Answer:
    """Answer with what two cells measured, or one."""
    named = results.names[of.run, of.key]
    if measure.compared == AGREEMENT and over is not None:
        told = loss_agreement.compare(cells, of, over)
        against = results.names[over.run, over.key]
        return Answer(
            f"{told.words}; {named} against {against}",
            named,
            against,
            *(told.value, None, None, measure.unit, told.n),
        )
    if over is None:
        figures = [measure.figure(of, one) for one in _counted(of)]
        unit = measure.unit.format(of.unit)
        known = [one for one in figures if one is not None]
        return _told(measure, known, unit, measure.is_rate, named)
    return _compared(measure, of, over, named, results.names[over.run, over.key])


def _compared(
    measure: FindingMeasure, of: CellResult, over: CellResult, named: str, against: str
) -> Answer:
    """Compare the trials of two cells in the same block."""
    theirs = {one.block: measure.figure(over, one) for one in _counted(over)}
    rates = rates_beside(of, over)
    figures = [
        (mine, other)
        for trial in _counted(of)
        if (mine := measure.figure(of, replace(trial, rate=rates.get(trial.block)))) is not None
        and (other := theirs.get(trial.block)) is not None
    ]
    if measure.compared == DIFFERENCE:
        more = [mine - other for mine, other in figures]
        return _told(measure, more, measure.unit, False, named, against)
    devices = of.scale.devices / over.scale.devices if measure.compared == PER_DEVICE else 1.0
    ratios = [mine / other / devices for mine, other in figures if other]
    unit = "of linear" if measure.compared == PER_DEVICE else "times"
    told = _told(measure, ratios, unit, all(one > 0 for one in ratios), named, against)
    unlike = more_threads(over, of) if measure.compared == PER_DEVICE else ""
    return replace(told, text=f"{told.text}; {unlike}") if unlike else told


def _missing(
    results: Results,
    cells: Sequence[CellResult],
    asked: Mapping[str, Any],
    meant: Sequence[tuple[CellResult, ...]],
) -> str:
    """Give the reason why no cell answers: refused, left out, failed or never run."""
    wanted = [selection(asked[side]) for side in ("of", "over") if asked.get(side) is not None]
    silent = [one for sides in meant for one in sides if not _answers(one)]
    named = {one.key: results.names[one.run, one.key] for one in cells}
    wrong = [f"{named[one.key]} is not ranked, {one.refusal}" for one in silent if one.refusal]
    if not wrong and silent:
        wrong = [_no_number(min(silent, key=said), named)]
    lacking = [which for which in wanted if not any(is_taken(one, which) for one in cells)]
    if not wrong and not lacking:
        found = [one for one in cells if any(is_taken(one, which) for which in wanted)]
        wrong = [f"nothing compares with {named[one.key]}" for one in found]
    if not wrong and len(results.runs) == 1:
        wrong = [
            one.why for one in results.holes if any(which.takes(one.factors) for which in lacking)
        ]
    return f"not measured: {', '.join(dict.fromkeys(wrong))}" if wrong else NO_CELL


def _no_number(cell: CellResult, named: Mapping[str, str]) -> str:
    """Say why of a cell, but not where its log lies: the page does so beside its trial."""
    if not cell.trials:
        return f"{named[cell.key]} was not run"
    told, _, _ = failures.why(failures.telling_trial(cell)).partition(" Log: ")
    return " ".join(told.split())


def _counted(cell: CellResult) -> list[TrialResult]:
    return [one for one in cell.trials if one.counted]


def _told(
    measure: FindingMeasure,
    values: Sequence[float],
    unit: str,
    is_ratio: bool,
    of: str,
    over: str = "",
) -> Answer:
    """Say a quantity with its interval; rates and ratios as rankings do."""
    what = f"{of} against {over}" if over else f"of {of}"
    if not values:
        return Answer(f"not measured: {measure.absent} ({what})", of, over)
    middle, told = estimate.median(values), estimate.median_interval(values)
    if is_ratio:
        middle, told = estimate.centre(values), estimate.centre_interval(values)
    text, low, high = f"{numbers.number(middle)} {unit}", None, None
    if told is not None:
        low, high = told.low, told.high
        text += f", {numbers.number(low)} to {numbers.number(high)} ({told.level:.0%})"
    text = f"{text}; {what}, n = {len(values)}"
    return Answer(text, of, over, middle, low, high, unit, len(values))
