"""Compare the findings of papers that a study names with what its run measured.

A rate of one cell is the geometric mean of its counted trials, another quantity their median; of
two cells, it is the mean of the ratios within the same block. Where several cells are meant, the
one of which least else is said stands for them, and of such the fastest; of two cells, those that
differ least in what was not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Questions
from harness.analysis.results import Results
from harness.stats import estimate
from harness.store.records import RunInfo
from harness.verdicts.results import CellResult, TrialResult


@dataclass(frozen=True)
class PaperFinding:
    """A statement of a paper, beside what was measured here."""

    question: str
    paper: str
    measured: str


_Quantity = Callable[[TrialResult], float | None]


def findings(results: Results, questions: Questions) -> tuple[PaperFinding, ...]:
    """Answer what each run's study asks; the same question of several runs once a run."""
    found = []
    for run in results.runs:
        for asked in questions.get(run.name, ()):
            measured = _measured(results, run, asked)
            if len(results.runs) > 1:
                measured = f"{run.name}: {measured}"
            found.append(PaperFinding(asked["question"], asked["paper"], measured))
    return tuple(found)


def _measured(results: Results, run: RunInfo, asked: Mapping[str, Any]) -> str:
    cells = [one for one in results.cells if one.run == run.name and not one.refusal]
    called = results.names
    of, over = _cell(cells, asked["of"]), None
    if asked.get("over") is not None:
        of, over = _pair(cells, asked["of"], asked["over"])
    if of is None or (over is None and "over" in asked):
        return _missing(results, run, asked)
    of_name = called[of.run, of.key]
    quantity, sentence = QUANTITIES[asked.get("measure", "rate")]
    if over is None:
        values = [value for value in map(quantity, _counted(of)) if value is not None]
        what = f"of {of_name}"
        return _told(values, sentence, what, is_ratio=quantity is _rate)
    theirs = {one.block: quantity(one) for one in _counted(over)}
    ratios = []
    for trial in _counted(of):
        mine, other = quantity(trial), theirs.get(trial.block)
        if mine is not None and other:
            ratios.append(mine / other)
    what = f"{of_name} against {called[over.run, over.key]}"
    return _told(ratios, "{} times", what, is_ratio=all(ratios))


def _missing(results: Results, run: RunInfo, asked: Mapping[str, Any]) -> str:
    """Give the reason why no cell answers; one that is refused never does."""
    wanted = [asked[side] for side in ("of", "over") if asked.get(side) is not None]
    wrong = [
        f"{results.names[one.run, one.key]} is not ranked, {one.refusal}"
        for one in results.cells
        if one.run == run.name and one.refusal and any(_is(one, which) for which in wanted)
    ]
    if not wrong:
        return "not measured: this run has no counted trial of it"
    return f"not measured: {', '.join(wrong)}"


def _cell(cells: Sequence[CellResult], wanted: Mapping[str, Any]) -> CellResult | None:
    """Find the cell with these factors that has a counted trial; cells come fastest first."""
    found = [cell for cell in cells if _is(cell, wanted) and _counted(cell)]
    return min(found, key=_said, default=None)


def _pair(
    cells: Sequence[CellResult], wanted: Mapping[str, Any], over: Mapping[str, Any]
) -> tuple[CellResult | None, CellResult | None]:
    """Find the two comparable cells that differ least in factors that are not asked for.

    A study's all-reduces may have the factors that are asked of what trains: only cells of one
    unit compare, and those of one task come first.
    """
    asked = {*wanted, *over}
    pairs = [
        (one, other)
        for one in cells
        if _is(one, wanted) and _counted(one)
        for other in cells
        if other is not one and _is(other, over) and _counted(other) and one.unit == other.unit
    ]

    def apart(pair: tuple[CellResult, CellResult]) -> tuple[int, int, bool]:
        one, other = pair
        names = {*one.factors, *other.factors} - asked
        differ = sum(one.factors.get(name) != other.factors.get(name) for name in names)
        boxed = bool(one.factors.get("container"))
        return (one.task != other.task) + differ, _said(one) + _said(other), boxed

    return min(pairs, key=apart, default=(None, None))


def _is(cell: CellResult, wanted: Mapping[str, Any]) -> bool:
    own = {"workload": cell.workload, "framework": cell.framework, "strategy": cell.strategy}
    known = {**cell.factors, **own}
    return all(known.get(name) == value for name, value in wanted.items())


def _said(cell: CellResult) -> int:
    return sum(value is not None for value in cell.factors.values())


def _counted(cell: CellResult) -> list[TrialResult]:
    return [one for one in cell.trials if one.counted]


def _told(values: Sequence[float], said: str, what: str, *, is_ratio: bool) -> str:
    """Say a quantity with its interval; rates and ratios as rankings do."""
    if not values:
        return f"not measured: nothing was recorded of it ({what})"
    middle, told = estimate.median(values), estimate.median_interval(values)
    if is_ratio:
        middle, told = estimate.centre(values), estimate.centre_interval(values)
    text = said.format(numbers.number(middle))
    if told is not None:
        ends = f"{numbers.number(told.low)} to {numbers.number(told.high)}"
        text += f", {ends} ({told.level:.0%})"
    return f"{text}; {what}, n = {len(values)}"


def _rate(trial: TrialResult) -> float | None:
    return trial.rate


def _waited(trial: TrialResult) -> float | None:
    share = None if trial.input is None else trial.input.wait_share
    return None if share is None else 100 * share


def _calls(trial: TrialResult) -> float | None:
    return None if trial.input is None else trial.input.calls_per_epoch


def _blocked(trial: TrialResult) -> float | None:
    return None if trial.checkpoints is None else trial.checkpoints.blocking_s


QUANTITIES: Mapping[str, tuple[_Quantity, str]] = {
    "rate": (_rate, "{} per second"),
    "waited": (_waited, "{} % of the time"),
    "calls": (_calls, "{} reads per epoch"),
    "blocked": (_blocked, "{} s"),
}
"""What a study's finding may ask for, by its word."""
