"""Fill the cards: the fastest, what it costs or lacks, are two apart, how far to trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness import units
from harness.analysis import numbers
from harness.analysis.context.derived import work_per_joule
from harness.analysis.context.trial_tally import tally
from harness.analysis.limits.holding_back import NOT_KNOWN, Limit
from harness.analysis.limits.words import short
from harness.analysis.ranking import Ranking, of_run, side_word
from harness.analysis.results import Results
from harness.analysis.scaling.efficiency import enough_up_to
from harness.analysis.scaling.scaling import ScalingLine, lines_of_all
from harness.store.records import EQUIVALENT, NOT_CHECKED, NOTHING
from harness.verdicts.results import CellResult, TrialResult
from harness.verdicts.thresholds import TOLERABLE

_FASTEST = "Fastest"
_THRIFTIEST = "Most work per joule"
_HELD = "What holds the fastest back"
_CLEAR = ("faster", "slower")


@dataclass(frozen=True)
class Card:
    """One of the things to know first."""

    title: str
    value: str
    detail: str


def cards(
    results: Results, ranked: Sequence[Ranking], held: Mapping[str, Limit]
) -> tuple[Card, ...]:
    """Give them all; where no energy was measured, what holds the fastest back, if that is known.

    ``held`` says by its key what holds a cell back. A card that could only say that nothing is
    known is left out.
    """
    raced = [ranking for ranking in ranked if ranking.sizes < 2] or ranked
    second = _thriftiest(raced) or _held_back(raced, held)
    found = (_fastest(raced), second, _apart(raced), trust(results))
    return tuple(card for card in found if card is not None)


def top_two(ranking: Ranking) -> tuple[str, str]:
    """Say whether the two fastest cells can be told apart, and how that is known."""
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
    best = [(r, _leader(r)) for r in found]
    if len(best) == 1:
        ranking, cell = best[0]
        value, interval = numbers.estimate(cell.rate)
        within = f" {interval}" if interval != numbers.UNKNOWN else ""
        return Card(_FASTEST, _on(ranking, cell), f"{value} {ranking.unit}{within}")
    names = sorted({_on(r, cell) for r, cell in best})
    value = names[0] if len(names) == 1 else _depends(ranked)
    each = [f"{r.workload}: {_on(r, c)}, {numbers.estimate(c.rate)[0]} {r.unit}" for r, c in best]
    return Card(_FASTEST, value, "; ".join(each))


def _leader(ranking: Ranking) -> CellResult:
    return max(ranking.cells, key=lambda cell: cell.rate.value if cell.rate else 0.0)


def _held_back(ranked: Sequence[Ranking], held: Mapping[str, Limit]) -> Card | None:
    """Say what holds the fastest back; None where no step was divided."""
    best = [(one, _leader(one)) for one in ranked if one.cells]
    known = [(one, cell, short(held[cell.key])) for one, cell in best if cell.key in held]
    if not known:
        return None
    values = {said for _, _, said in known}
    value = values.pop() if len(values) == 1 else _depends(ranked)
    if len(known) == 1:
        ((one, cell, _),) = known
        why = held[cell.key].why_unknown if value == NOT_KNOWN else ()
        return Card(_HELD, value, ": ".join((one.name(cell), *why[:1])))
    return Card(_HELD, value, "; ".join(f"{one.workload}: {said}" for one, _, said in known))


def _thriftiest(ranked: Sequence[Ranking]) -> Card | None:
    """Name what does most for its energy; None where none was measured."""
    best: list[tuple[Ranking, CellResult, float]] = []
    for ranking in ranked:
        known = [(work, cell) for cell in ranking.cells if (work := work_per_joule(cell))]
        if known:
            work, cell = max(known, key=lambda pair: pair[0])
            best.append((ranking, cell, work))
    if not best:
        return None
    names, details = [], []
    for ranking, cell, work in best:
        names.append(_on(ranking, cell))
        workload = f"{ranking.workload}: " if len(ranked) > 1 else ""
        name = f"{names[-1]}, " if len(best) > 1 else ""
        unit = ranking.unit.removesuffix("/s")
        details.append(f"{workload}{name}{numbers.number(work)} {unit} per joule")
    value = names[0] if len(set(names)) == 1 else _depends(ranked)
    return Card(_THRIFTIEST, value, "; ".join(details))


def _depends(ranked: Sequence[Ranking]) -> str:
    """Say on what an answer depends that is another one in some of several rankings."""
    return f"Depends on the {'pair' if ranked[0].is_pair else 'workload'}"


def _on(ranking: Ranking, cell: CellResult) -> str:
    """Name a cell, of several runs with its machine."""
    where = f" on {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
    return f"{ranking.name(cell)}{where}"


def _apart(ranked: Sequence[Ranking]) -> Card:
    if len(ranked) == 1 and (lines := lines_of_all(ranked[0])):
        return _enough(lines)
    title = "Are the top two distinguishable?"
    found = []
    for ranking in ranked:
        for run in dict.fromkeys(cell.run for cell in ranking.cells):
            alone = of_run(ranking, run)
            parts = [ranking.workload] if len(ranked) > 1 else []
            parts += [ranking.machine(alone.cells[0])] if len(ranking.runs) > 1 else []
            found.append((" on ".join(parts), *top_two(alone)))
    values = {value for _, value, _ in found}
    if values <= {numbers.UNKNOWN}:
        return Card(title, "Not compared", "; ".join(dict.fromkeys(why for *_, why in found)))
    if len(found) == 1:
        return Card(title, found[0][1], found[0][2])
    on_side = f"Depends on the {side_word(ranked[0].runs)}"
    depends = _depends(ranked) if len(ranked) > 1 else on_side
    value = values.pop() if len(values) == 1 else depends
    return Card(title, value, "; ".join(f"{where}: {v.lower()}" for where, v, _ in found))


def _enough(lines: Sequence[ScalingLine]) -> Card:
    """Say how far things scale, where nothing else is asked: which count is fastest is no news."""
    most = [units.counted(enough_up_to(line), line.counts) for line in lines]
    each = "; ".join(f"{line.name}: {count}" for line, count in zip(lines, most, strict=True))
    value = most[0] if len(set(most)) == 1 else "Depends on the cell"
    detail = f"of {', '.join(str(point.devices) for point in lines[0].points)}"
    return Card("At least 80 % efficient up to", value, detail if len(lines) == 1 else each)


def _as_timed(trials: Sequence[TrialResult]) -> str:
    """Say how many trials were examined as they were timed; the gate steps a network of its own."""
    counted = [trial for trial in trials if trial.counted]
    if not counted:
        return "; nothing that was timed counts"
    examined = sum(trial.is_examined for trial in counted)
    those = "1 that counts" if len(counted) == 1 else f"{len(counted):,} that count"
    return f"; {examined:,} of the {those} examined as timed"


def _why_counted(verdicts: Mapping[str, int]) -> Iterator[str]:
    """Say why trials count that are not valid: they are tolerated, or only marked."""
    for is_tolerated, why in (
        (True, "which the study tolerates"),
        (False, "which only marks them"),
    ):
        told = [
            f"{count} {verdict}"
            for verdict, count in sorted(verdicts.items())
            if (verdict in TOLERABLE) is is_tolerated
        ]
        if told:
            yield f"{' and '.join(told)}, {why}"


def trust(results: Results) -> Card:
    """Say how many trials count, what was found of the others, and what the gate found."""
    tallied = tally(results.cells)
    trials = tallied.made
    verdicts: dict[str, int] = {}
    for trial in trials:
        if trial.counted and trial.verdict not in (None, "valid"):
            verdicts[str(trial.verdict)] = verdicts.get(str(trial.verdict), 0) + 1
    says = [*_why_counted(verdicts)]
    again = sum(t.attempt > 1 for t in trials)
    if again:
        says.append(f"{again} re-run")
    states: dict[str, int] = {}
    for cell in results.cells:
        if cell.gate.state != NOTHING:
            states[cell.gate.state] = states.get(cell.gate.state, 0) + 1
    total = sum(states.values())
    if not total:
        pass  # nothing is trained here
    elif states.get(EQUIVALENT) == total:
        says.append(f"gate passed{_as_timed(trials)}")
    elif states.get(NOT_CHECKED) == total:
        says.append("equivalence not checked")
    else:
        told = ", ".join(f"{n} {state}" for state, n in sorted(states.items()))
        says.append(f"gate: {told}{_as_timed(trials)}")
    costs = [c.utilisation["observer"] for c in results.cells if "observer" in c.utilisation]
    if costs:
        says.append(f"observer cost {numbers.share(max(costs))} of a core")
    if tallied.pilots:
        says.append(
            f"{units.counted(len(tallied.pilots), 'pilot trial')} chose the reference and "
            f"{'is' if len(tallied.pilots) == 1 else 'are'} discarded"
        )
    says += [
        str(run.repetition)[:-1]
        for run in results.runs
        if run.repetition and run.repetition.narrow and run.repetition.stopped
    ]
    word = "valid" if not verdicts else "counts" if len(trials) == 1 else "count"
    return Card(
        "How far to trust this",
        f"{tallied.out_of(tallied.counted)} {word}",
        "; ".join(says),
    )
