"""Write what a figure or table shows: machine, number of trials, what its intervals are."""

from __future__ import annotations

from harness.analysis.context.interval_words import in_words
from harness.analysis.context.machine_words import header
from harness.analysis.results import Results


def caption(results: Results, title: str, *more: str) -> str:
    """Say what is shown, on what it was measured, from how many trials, with which intervals."""
    shown = f"{title} ({'; '.join(more)})" if more else title
    said = (shown, "; ".join(header(results)), _trials(results), intervals(results))
    simulated = "Simulated: no machine was measured" if results.is_simulated else ""
    return " ".join(f"{one}." for one in (*said, simulated) if one)


def _trials(results: Results) -> str:
    counts = sorted({cell.rate.n for cell in results.cells if cell.rate})
    if not counts:
        return ""
    return (
        f"n = {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "") + " trials per cell"
    )


def intervals(results: Results) -> str:
    """Say what the intervals of rates are, and at which level they hold."""
    known = [cell for cell in results.cells if cell.rate and cell.rate.interval]
    return f"Intervals of rates: {in_words(known)}" if known else ""
