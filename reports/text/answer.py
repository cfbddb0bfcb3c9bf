"""Say in words what the numbers say: the question, the answer, the warnings.

The page, the terminal and the end of a run all speak with these sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.effects.words import sentences as effect_sentences
from harness.analysis.limits.holding_back import Limit
from harness.analysis.ranking import Ranking, in_sentence, machine_name, of_run
from harness.analysis.results import Results
from harness.analysis.scaling.efficiency import how_far
from harness.analysis.scaling.messages import link_peak, peak_share
from harness.analysis.scaling.scaling import lines_of_all
from harness.units import per_cent
from harness.verdicts.results import CellResult
from reports.text.cards import Card, cards
from reports.text.comparisons import against_reference, basis, is_answered, of_pairs

SIMULATED = "Simulated: a model said all this. No machine was measured."
_NAMED = 3
WARNINGS_SHOWN = 3
"""More would push the ranking off the first screen; the others are told after it."""


@dataclass(frozen=True)
class Answer:
    """What a reader should know after ten seconds."""

    question: str
    sentences: tuple[tuple[str, str], ...]
    """One per workload: its name, empty where there is only one, and the answer."""
    basis: str
    """On which machine cells were compared, in how many blocks and how surely; may be empty."""
    cards: tuple[Card, ...]
    warnings: tuple[str, ...]
    """The gravest first."""
    rankings: tuple[Ranking, ...]


def _reached(ranking: Ranking, cell: CellResult, verb: str = "reaches") -> str:
    value, _ = numbers.estimate(cell.rate)
    within = ""
    if cell.rate and cell.rate.interval:
        within = f" (interval {numbers.span(cell.rate.interval, cell.rate.value)})"
    return f"{ranking.name(cell)} {verb} {value} {ranking.unit}{within}"


def _highest(ranking: Ranking, cell: CellResult) -> str:
    return _reached(ranking, cell, "has the highest rate,")


def _across_runs(ranking: Ranking) -> str:
    """Name each machine's fastest; unpaired runs get no verdict here."""
    runs = dict.fromkeys(cell.run for cell in ranking.cells)
    best = [of_run(ranking, run).cells[0] for run in runs]
    said = [f"on {in_sentence(ranking.machine(cell))}, {_reached(ranking, cell)}" for cell in best]
    text = "; ".join(said) + "."
    return text[:1].upper() + text[1:]


def sentence(ranking: Ranking) -> str:
    """Answer for one workload, with the interval, or say that nothing can be said."""
    if not ranking.cells:
        unranked = (*ranking.without, *ranking.set_aside)
        others = sorted({cell.left_out for cell in unranked if cell.left_out})
        if others and not any(cell.trials for cell in unranked):
            return f"Every trial {_left_out(others)}, so there is no answer yet."
        ran = any(cell.trials for cell in unranked)
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
    told = against_reference(ranking, reference) if reference else ""
    if not told:
        return f"{_highest(ranking, leader)}; no comparison was made."
    return told if is_answered(ranking) else f"{_highest(ranking, leader)}. {told}"


def _left_out(origins: Sequence[str]) -> str:
    """Say why trials that were run are not shown."""
    return f"is of the origin {' or '.join(origins)} and left out"


def _of_messages(ranking: Ranking) -> str:
    """Say how much is carried at most, and how quickly the least is there."""
    most = ranking.cells[0]
    least = min(ranking.cells, key=lambda cell: cell.factors["message_bytes"])
    assert most.rate is not None
    assert least.rate is not None
    took = numbers.seconds(least.factors["message_bytes"] / least.rate.value)
    carried = f"{numbers.number(most.rate.value / 1e6)} MB/s at most{_held_to_claim(ranking, most)}"
    return f"{ranking.name(most)}: {carried}; {ranking.name(least)}: {took} each."


def _held_to_claim(ranking: Ranking, cell: CellResult) -> str:
    """Say what part of the link's claimed peak a cell reached, where there is a claim."""
    peak = next(link_peak(run) for run in ranking.runs if run.name == cell.run)
    share = peak_share(cell, peak)
    if peak is None or share is None:
        return ""
    claim = f"{numbers.number(peak / 1e6)} MB/s"
    return f", on each link {per_cent(share)} of the {claim} that the profile claims"


def _sentence(results: Results, ranking: Ranking) -> str:
    """Answer for one workload: of many cells what each factor does, of more devices how far."""
    effects = results.effects.get(ranking.workload)
    if effects is None:
        lines = lines_of_all(ranking)
        if 0 < len(lines) <= _NAMED:
            return " ".join(f"{line.name} is {how_far(line)}" for line in lines)
        return sentence(ranking)
    return " ".join((*effect_sentences(effects), f"{_highest(ranking, ranking.cells[0])}."))


def _question(results: Results, ranked: Sequence[Ranking]) -> str:
    if results.question:
        return results.question
    workloads = " and ".join(r.workload for r in ranked) or "this study"
    where = " or ".join(in_sentence(machine_name(run)) for run in results.runs)
    frameworks = {c.framework for c in results.cells}
    what = "Which framework" if len(frameworks) > 1 else "Which setting"
    return f"{what} runs {workloads} fastest on {where}?"


def _why_none(cell: CellResult) -> str:
    """Say why no trial of a cell gave a number that counts."""
    if not cell.trials and cell.left_out:
        return f"every trial {_left_out([cell.left_out])}"
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


def _listed(names: Sequence[str]) -> str:
    """Name the cells; of many how many and the first, as a section lists them all."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{len(names)} cells, such as {names[0]}"


def _where(ranking: Ranking, cell: CellResult) -> str:
    """Say of what a warning is: of several runs, others may have what this one lacks."""
    if len(ranking.runs) == 1:
        return ranking.workload
    return f"{ranking.workload} on {in_sentence(ranking.machine(cell))}"


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
            f"{where}, {_listed(names)}: no number ({why})."
            for (where, why), names in failed.items()
        ]
    return tuple(dict.fromkeys((*told, *results.warnings)))


def answer(results: Results, held: Mapping[str, Limit] | None = None) -> Answer:
    """Say everything that belongs on the first screen; ``held`` is what holds cells back."""
    ranked = results.rankings
    told = [_sentence(results, one) for one in ranked]
    sentences = [(one.workload, text) for one, text in zip(ranked, told, strict=True)]
    if any(one.is_pair for one in ranked):
        sentences = of_pairs(ranked, told)
    if len(ranked) == 1:
        sentences = [("", told[0])]
    return Answer(
        question=_question(results, ranked),
        sentences=tuple(sentences) or (("", "Nothing was measured."),),
        basis=basis(results, ranked),
        cards=cards(results, ranked, held or {}),
        warnings=_warnings(results, ranked),
        rankings=ranked,
    )
