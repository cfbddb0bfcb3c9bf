"""This file says in words what the numbers say: the question, the answer, the four cards.

The page, the terminal and the end of a run all speak with these sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.store.layout import PILOT
from harness.store.results import CellResult, Comparison, Results, TrialResult
from reports import numbers
from reports.ranking import Ranking, machine_name, of_run, rankings

_FASTEST = "Fastest, by median"
_CLEAR = ("faster", "slower")
WARNINGS_SHOWN = 3
"""More would push the ranking off the first screen; the others are told after it."""


@dataclass(frozen=True)
class Card:
    """One of the four things to know first."""

    title: str
    value: str
    detail: str


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
    more = comparison.more_blocks
    ending = f"; about {comparison.blocks + more} would do" if more else ""
    if comparison.interval is None:
        count = comparison.blocks
        few = "1 block is" if count == 1 else f"{count or 'no'} blocks are"
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
    same, unclear = _first(others, "same"), _first(others, "cannot tell")
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
        clear = f"{_highest(ranking, leader)}."
    return f"{clear} {doubtful}".strip()


def _highest(ranking: Ranking, cell: CellResult) -> str:
    return _reached(ranking, cell, "has the highest median,")


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
        return "No trial gave a number that counts, so there is no answer yet."
    if len({c.run for c in ranking.cells}) > 1:
        return _across_runs(ranking)
    leader = ranking.cells[0]
    if len(ranking.cells) == 1:
        return _reached(ranking, leader) + "; there is nothing to compare it with."
    reference = ranking.reference
    told = _against_reference(ranking, reference) if reference else ""
    return told or f"{_highest(ranking, leader)}; no comparison was made."


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


def top_two(ranking: Ranking) -> tuple[str, str]:
    """Say whether the two highest medians can be told apart, and how that is known."""
    if len(ranking.cells) < 2:
        return numbers.UNKNOWN, "only one cell has a number"
    first, second = ranking.cells[:2]
    pair = f"{ranking.name(first)} and {ranking.name(second)}"
    one, two = first.comparison, second.comparison
    if one is None or two is None or first.run != second.run:
        return numbers.UNKNOWN, f"{pair} were not compared"
    against = two if one.answer == "reference" else one
    if "reference" in (one.answer, two.answer):
        if against.answer in _CLEAR:
            return "Yes", f"{pair}: {numbers.ratio(against.ratio)} × the reference"
        if against.answer == "same":
            return "No, equally fast", pair
        more = against.more_blocks
        hint = f"; about {against.blocks + more} blocks would tell" if more else ""
        return "Cannot tell", f"{pair}{hint}"
    # Both intervals hold together, so disjoint ones put the two in order.
    if one.interval and two.interval and one.interval.low > two.interval.high:
        return "Yes", f"{pair}: their intervals against the reference lie apart"
    return "Cannot tell", f"{pair}: their intervals against the reference overlap"


def _fastest(ranked: Sequence[Ranking]) -> Card:
    found = [r for r in ranked if r.cells]
    if not found:
        return Card(_FASTEST, numbers.UNKNOWN, "no trial gave a number")
    best = [(r, max(r.cells, key=lambda c: c.rate.value if c.rate else 0.0)) for r in found]
    if len(best) == 1:
        ranking, cell = best[0]
        value, interval = numbers.estimate(cell.rate)
        where = f" on {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
        return Card(_FASTEST, f"{ranking.name(cell)}{where}", f"{value} {ranking.unit} {interval}")
    names = sorted({r.name(cell) for r, cell in best})
    value = names[0] if len(names) == 1 else "Depends on the workload"
    each = [f"{r.workload}: {r.name(c)}, {numbers.estimate(c.rate)[0]} {r.unit}" for r, c in best]
    return Card(_FASTEST, value, "; ".join(each))


def work_per_joule(cell: CellResult) -> float | None:
    """Divide the rate by the mean power of the steady window; None where power is unknown."""
    power = cell.utilisation.get("power_w")
    return cell.rate.value / power if cell.rate and power else None


def _thriftiest(ranked: Sequence[Ranking]) -> Card:
    title = "Most work per joule"
    for ranking in ranked:
        known = [(work_per_joule(c), c) for c in ranking.cells]
        best = max(((w, c) for w, c in known if w is not None), key=lambda p: p[0], default=None)
        if best:
            unit = f"{ranking.unit.removesuffix('/s')} per joule"
            detail = f"{numbers.number(best[0])} {unit}"
            if len(ranked) > 1:
                detail = f"{ranking.workload}: {detail}"
            return Card(title, ranking.name(best[1]), detail)
    return Card(title, numbers.UNKNOWN, "energy was not measured here")


def _apart(ranked: Sequence[Ranking]) -> Card:
    title = "Are the top two distinguishable?"
    found = []
    for ranking in ranked:
        for run in dict.fromkeys(cell.run for cell in ranking.cells):
            alone = of_run(ranking, run)
            parts = [ranking.workload] if len(ranked) > 1 else []
            parts += [ranking.machine(alone.cells[0])] if len(ranking.runs) > 1 else []
            found.append((" on ".join(parts), *top_two(alone)))
    if not found:
        return Card(title, numbers.UNKNOWN, "nothing to compare")
    if len(found) == 1:
        return Card(title, found[0][1], found[0][2])
    values = {value for _, value, _ in found}
    what = "workload" if len(ranked) > 1 else "machine"
    value = values.pop() if len(values) == 1 else f"Depends on the {what}"
    return Card(title, value, "; ".join(f"{where}: {v.lower()}" for where, v, _ in found))


def trial_list(results: Results) -> list[TrialResult]:
    """List every trial of every cell."""
    return [trial for cell in results.cells for trial in cell.trials]


def _trust(results: Results) -> Card:
    trials = [trial for trial in trial_list(results) if trial.block != PILOT]
    counted = sum(t.counted for t in trials)
    verdicts: dict[str, int] = {}
    for trial in trials:
        if trial.counted and trial.verdict not in (None, "valid"):
            verdicts[str(trial.verdict)] = verdicts.get(str(trial.verdict), 0) + 1
    says = [f"{count} {verdict}" for verdict, count in sorted(verdicts.items())]
    again = sum(t.attempt > 1 for t in trials)
    if again:
        says.append(f"{again} re-run")
    states: dict[str, int] = {}
    for cell in results.cells:
        states[cell.gate.state] = states.get(cell.gate.state, 0) + 1
    total = len(results.cells)
    if states.get("equivalent") == total and total:
        says.append("gate passed")
    elif states.get("not checked") == total:
        says.append("equivalence not checked")
    else:
        says.append("gate: " + ", ".join(f"{n} {state}" for state, n in sorted(states.items())))
    costs = [c.utilisation["observer"] for c in results.cells if "observer" in c.utilisation]
    if costs:
        says.append(f"observer cost {numbers.share(max(costs))} of a core")
    piloted = len(trial_list(results)) - len(trials)
    if piloted:
        says.append(f"{piloted} pilot trials chose the reference and are discarded")
    says += [
        str(run.repetition)[:-1]
        for run in results.runs
        if run.repetition and run.repetition.narrow and run.repetition.stopped
    ]
    word = "count" if verdicts else "valid"
    return Card(
        "How far to trust this", f"{counted} of {len(trials)} trials {word}", "; ".join(says)
    )


def _warnings(results: Results, ranked: Sequence[Ranking]) -> tuple[str, ...]:
    """Say first what the ranking leaves out, then the analysis' own warnings in their order."""
    told = []
    for ranking in ranked:
        told += [
            f"{ranking.workload}, {ranking.name(cell)}: not ranked, it computes something else"
            f" ({cell.gate.detail or 'the gate gave no detail'})."
            for cell in ranking.set_aside
        ]
        failed: dict[str, list[str]] = {}
        for cell in ranking.without:
            why = next((t.reason for t in cell.trials if t.reason), "no trial was run")
            failed.setdefault(why.rstrip("."), []).append(ranking.name(cell))
        told += [
            f"{ranking.workload}, {', '.join(names)}: no number ({why})."
            for why, names in failed.items()
        ]
    return tuple(dict.fromkeys((*told, *results.warnings)))


def answer(results: Results) -> Answer:
    """Say everything that belongs on the first screen."""
    ranked = rankings(results)
    several = len(ranked) > 1
    sentences = tuple((r.workload if several else "", sentence(r)) for r in ranked)
    return Answer(
        question=_question(results, ranked),
        sentences=sentences or (("", "Nothing was measured."),),
        cards=(_fastest(ranked), _thriftiest(ranked), _apart(ranked), _trust(results)),
        warnings=_warnings(results, ranked),
        rankings=ranked,
    )
