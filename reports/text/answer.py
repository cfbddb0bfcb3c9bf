"""Say in words what the numbers say: the question, the answer, the warnings.

The page, the terminal and the end of a run all speak with these sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.ranking import Ranking, machine_name, of_run
from harness.analysis.results import Results
from harness.verdicts.results import CellResult, Comparison
from reports.text.cards import Card, cards

SIMULATED = "Simulated: a model said all this. No machine was measured."
WARNINGS_SHOWN = 3
"""More would push the ranking off the first screen; the others are told after it."""


@dataclass(frozen=True)
class Answer:
    """What a reader should know after ten seconds."""

    question: str
    sentences: tuple[tuple[str, str], ...]
    """One per workload: its name, empty where there is only one, and the answer."""
    cards: tuple[Card, ...]
    warnings: tuple[str, ...]
    """The gravest first."""
    rankings: tuple[Ranking, ...]


def _blocks(count: int) -> str:
    return "this 1 block" if count == 1 else f"these {count} blocks"


def _cannot_tell(opening: str, comparison: Comparison) -> str:
    if comparison.answer == "contended":
        return f"{opening} is not known, as somebody else used the machine: {comparison.why}."
    more = comparison.more_blocks
    ending = f"; about {comparison.blocks + more} would do" if more else ""
    if comparison.interval is None:
        count = comparison.blocks
        few = "1 block is" if count == 1 else f"{count} blocks are"
        if not count:
            return f"{opening} is not known: the only block chose the reference{ending}."
        return f"{opening}, {few} too few to tell{ending}."
    ending = ending.removesuffix(" do")
    return f"{opening}, {_blocks(comparison.blocks)} cannot tell{ending}."


def _times(name: str, comparison: Comparison, other: str, *, turned: bool) -> str:
    """Say how many times as fast, always as a number above one where the answer is clear."""
    if comparison.ratio is None:
        return f"{name} is faster than {other}"
    value = 1 / comparison.ratio if turned else comparison.ratio
    interval = comparison.interval
    if interval is not None and turned:
        interval = numbers.inverse(interval)
    said = numbers.ratio(value, interval)
    within = f" (interval {numbers.ratio_span(interval, value)})" if interval else ""
    return f"{name} is {said} × as fast as {other}{within}"


def _first(cells: Sequence[CellResult], answer: str) -> CellResult | None:
    return next((c for c in cells if c.comparison and c.comparison.answer == answer), None)


def _reached(ranking: Ranking, cell: CellResult, verb: str = "reaches") -> str:
    value, _ = numbers.estimate(cell.rate)
    within = ""
    if cell.rate and cell.rate.interval:
        within = f" (interval {numbers.span(cell.rate.interval, cell.rate.value)})"
    return f"{ranking.name(cell)} {verb} {value} {ranking.unit}{within}"


def _against_reference(ranking: Ranking, reference: CellResult) -> str:
    """Lead with what is clear, then say what is not."""
    name = ranking.name
    others = [c for c in ranking.cells if c is not reference]
    leader = ranking.cells[0]
    clear, doubtful = "", ""
    faster, slower = _first(others, "faster"), _first(others, "slower")
    same = _first(others, "same")
    unclear = _first(others, "cannot tell") or _first(others, "contended")
    if faster and faster.comparison:
        clear = _times(name(faster), faster.comparison, name(reference), turned=False) + "."
    elif slower and slower.comparison:
        clear = _times(name(reference), slower.comparison, name(slower), turned=True) + "."
    if same and (leader in (same, reference)):
        clear = f"{name(same)} and {name(reference)} are equally fast. {clear}".rstrip()
    if unclear and unclear.comparison and (not faster or leader is unclear):
        opening = f"Whether {name(unclear)} is faster or slower than {name(reference)}"
        doubtful = _cannot_tell(opening, unclear.comparison)
    if doubtful and not clear:
        if leader is unclear and unclear.comparison:
            opening = f"{_highest(ranking, leader)}, but whether that is faster than"
            return _cannot_tell(f"{opening} {name(reference)}", unclear.comparison)
        clear = f"{_highest(ranking, leader)}."
    return f"{clear} {doubtful}".strip()


def _highest(ranking: Ranking, cell: CellResult) -> str:
    return _reached(ranking, cell, "has the highest rate,")


def _across_runs(ranking: Ranking) -> str:
    """Name each machine's fastest; unpaired runs get no verdict here."""
    runs = dict.fromkeys(cell.run for cell in ranking.cells)
    best = [of_run(ranking, run).cells[0] for run in runs]
    said = [f"on {_in_sentence(ranking.machine(cell))}, {_reached(ranking, cell)}" for cell in best]
    text = "; ".join(said) + "."
    return text[:1].upper() + text[1:]


def sentence(ranking: Ranking) -> str:
    """Answer for one workload, with the interval, or say that nothing can be said."""
    if not ranking.cells:
        ran = any(cell.trials for cell in (*ranking.without, *ranking.set_aside))
        what = "gave a number that counts" if ran else "was run"
        return f"No trial {what}, so there is no answer yet."
    if len({c.run for c in ranking.cells}) > 1:
        return _across_runs(ranking)
    if ranking.sizes > 1:
        return _of_messages(ranking)
    leader = ranking.cells[0]
    if len(ranking.cells) == 1:
        return _reached(ranking, leader) + "; there is nothing to compare it with."
    reference = ranking.reference
    told = _against_reference(ranking, reference) if reference else ""
    return told or f"{_highest(ranking, leader)}; no comparison was made."


def _of_messages(ranking: Ranking) -> str:
    """Say how much is carried at most, and how quickly the least is there."""
    most = ranking.cells[0]
    least = min(ranking.cells, key=lambda cell: cell.factors["message_bytes"])
    assert most.rate is not None
    assert least.rate is not None
    took = numbers.seconds(least.factors["message_bytes"] / least.rate.value)
    carried = f"{numbers.number(most.rate.value / 1e6)} MB/s"
    return f"{ranking.name(most)}: {carried} at most; {ranking.name(least)}: {took} each."


def _in_sentence(title: str) -> str:
    """Lower the article of a title, nothing else: names keep their capitals."""
    first, _, rest = title.partition(" ")
    return f"{first.lower()} {rest}" if first in ("This", "A", "An", "The") else title


def _question(results: Results, ranked: Sequence[Ranking]) -> str:
    if results.question:
        return results.question
    workloads = " and ".join(r.workload for r in ranked) or "this study"
    where = " or ".join(_in_sentence(machine_name(run)) for run in results.runs)
    frameworks = {c.framework for c in results.cells}
    what = "Which framework" if len(frameworks) > 1 else "Which setting"
    return f"{what} runs {workloads} fastest on {where}?"


def _why_none(cell: CellResult) -> str:
    """Say why no trial of a cell gave a number that counts."""
    if not cell.trials:
        return "no trial was run"
    for trial in cell.trials:
        if trial.reason:
            return trial.reason.rstrip(".")
    rejected = sorted({trial.verdict for trial in cell.trials if trial.verdict})
    if rejected:
        return f"every trial was rejected as {' or '.join(rejected)}"
    said = next((trial.evidence[0] for trial in cell.trials if trial.evidence), "")
    return f"no trial gave a rate{f': {said}' if said else ''}"


def _where(ranking: Ranking, cell: CellResult) -> str:
    """Say of what a warning is: of several runs, others may have what this one lacks."""
    if len(ranking.runs) == 1:
        return ranking.workload
    return f"{ranking.workload} on {_in_sentence(ranking.machine(cell))}"


def _warnings(results: Results, ranked: Sequence[Ranking]) -> tuple[str, ...]:
    """Say first what the ranking leaves out, then the analysis' own warnings in their order."""
    told = []
    is_begun = any(cell.trials for cell in results.cells)
    for ranking in ranked:
        told += [
            f"{_where(ranking, cell)}, {ranking.name(cell)}: not ranked, {cell.refusal}."
            for cell in ranking.set_aside
            if cell.refusal
        ]
        failed: dict[tuple[str, str], list[str]] = {}
        for cell in ranking.without if is_begun else ():
            alike = failed.setdefault((_where(ranking, cell), _why_none(cell)), [])
            alike.append(ranking.name(cell))
        told += [
            f"{where}, {', '.join(names)}: no number ({why})."
            for (where, why), names in failed.items()
        ]
    return tuple(dict.fromkeys((*told, *results.warnings)))


def answer(results: Results) -> Answer:
    """Say everything that belongs on the first screen."""
    ranked = results.rankings
    several = len(ranked) > 1
    sentences = tuple((r.workload if several else "", sentence(r)) for r in ranked)
    return Answer(
        question=_question(results, ranked),
        sentences=sentences or (("", "Nothing was measured."),),
        cards=cards(results, ranked),
        warnings=_warnings(results, ranked),
        rankings=ranked,
    )
