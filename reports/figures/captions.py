"""Write what a figure or table shows: machine, number of trials, what its intervals are."""

from __future__ import annotations

from harness import units
from harness.analysis.context.interval_words import in_words
from harness.analysis.context.machine_words import header
from harness.analysis.results import Results


def caption(results: Results, title: str, *more: str, has_ratios: bool = False) -> str:
    """Say what is shown, on what it was measured, from how many trials, with which intervals.

    ``has_ratios`` adds to what ratios are, and how surely.
    """
    shown = f"{title} ({'; '.join(more)})" if more else title
    said = [shown, "; ".join(header(results)), _trials(results), intervals(results)]
    said += [ratios(results)] if has_ratios else []
    simulated = "Simulated: no machine was measured" if results.is_simulated else ""
    return " ".join(f"{one}." for one in (*said, simulated) if one)


def _trials(results: Results) -> str:
    counts = sorted({cell.rate.n for cell in results.cells if cell.rate})
    if not counts:
        return ""
    trials = units.counted(counts[-1], "trial")
    return f"n = {f'{counts[0]} to ' if len(counts) > 1 else ''}{trials} per cell"


def ratios(results: Results) -> str:
    """Name the reference of each workload, and the level at which intervals of ratios hold."""
    compared = [one for one in results.rankings if one.reference]
    named: dict[str, list[str]] = {}
    for one in compared:
        if one.reference:
            named.setdefault(one.name(one.reference), []).append(one.workload)
    if not named:
        return ""
    names = next(iter(named))
    if len(named) > 1:
        names = ", ".join(f"{name} ({', '.join(of)})" for name, of in named.items())
    said = f"Reference: {names}; ratios are paired within blocks"
    every = [cell.comparison for one in compared for cell in one.cells if cell.comparison]
    levels = [one.interval.level for one in every if one.interval]
    if not levels:
        return said
    of = " of each workload" if len(compared) > 1 else ""
    holds = "interval holds" if len(levels) == 1 else f"intervals{of} hold together"
    return f"{said}, their {holds} with {100 * min(levels):.3g} %"


def intervals(results: Results) -> str:
    """Say what the intervals of rates are, and at which level they hold."""
    known = [cell for cell in results.cells if cell.rate and cell.rate.interval]
    return f"Intervals of rates: {in_words(known)}" if known else ""
