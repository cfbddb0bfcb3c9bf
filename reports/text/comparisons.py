"""Say in sentences how the cells of a task compare with its reference, where and how surely.

Each comparison has one short sentence: those that are answered first, fastest cell first, then
those that are open. Where there are many, the fastest cells have theirs and the others are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from harness.analysis import numbers
from harness.analysis.ranking import Ranking, in_sentence, machine_name
from harness.analysis.results import Results
from harness.store.records import RunInfo
from harness.units import counted
from harness.verdicts.results import CellResult, Comparison

_TOLD = 3
"""So many comparisons have a sentence where others are only counted."""
_NAMED = 2
"""So many cells whose comparison is open are named in a sentence; a ranking lists them all."""
_CLEAR = {"faster": "faster", "slower": "slower", "same": "equally fast"}


def against_reference(ranking: Ranking, reference: CellResult) -> str:
    """Say of each cell how it compares; nothing where none was compared."""
    told = [(c, c.comparison) for c in ranking.cells if c is not reference and c.comparison]
    if not told:
        return ""
    are_all_shown = len(told) <= _TOLD + 1 or not is_answered(ranking)
    shown = told if are_all_shown else told[:_TOLD]
    name = ranking.name(reference)
    sentences = [_clear(ranking.name(c), one, name) for c, one in shown if one.answer in _CLEAR]
    reasons: dict[str, list[str]] = {}
    for cell, one in shown:
        if one.answer not in _CLEAR:
            reasons.setdefault(_why_open(one), []).append(ranking.name(cell))
    sentences += [
        f"Whether {_any_of(names, len(told))} is faster or slower than {name} is not known: {why}"
        for why, names in reasons.items()
    ]
    if not are_all_shown:
        sentences.append(_counted([one for _, one in told[_TOLD:]]))
    return " ".join(sentences)


def _any_of(names: Sequence[str], compared: int) -> str:
    """Name one or two cells; of more say how many of those compared they are."""
    if len(names) <= _NAMED:
        return " or ".join(names)
    return f"any of {'the other ' if len(names) == compared else ''}{len(names)}"


def of_pairs(ranked: Sequence[Ranking], told: Sequence[str]) -> list[tuple[str, str]]:
    """Give each pair of a session of two sides its sentence; of many those that changed most.

    ``told`` are the sentences of the rankings.
    """
    pairs = list(zip(ranked, told, strict=True))
    if len(pairs) <= _TOLD + 1:
        return [(one.workload, text) for one, text in pairs]
    pairs.sort(key=lambda pair: _change(pair[0]), reverse=True)
    others = [found for one, _ in pairs[_TOLD:] if (found := _comparison(one)) is not None]
    counted_ones = [("", _counted(others))] if others else []
    return [(one.workload, text) for one, text in pairs[:_TOLD]] + counted_ones


def _comparison(ranking: Ranking) -> Comparison | None:
    compared = [c.comparison for c in ranking.cells if c.comparison]
    return next((one for one in compared if one.answer != "reference"), None)


def _change(ranking: Ranking) -> tuple[bool, float]:
    """Order pairs by what is known to have changed, then by how much."""
    told = _comparison(ranking)
    if told is None or not told.ratio:
        return False, 0.0
    return told.answer in ("faster", "slower"), abs(log(told.ratio))


def is_answered(ranking: Ranking) -> bool:
    """Whether any comparison of a ranking has an answer."""
    return any(c.comparison and c.comparison.answer in _CLEAR for c in ranking.cells)


def basis(results: Results, ranked: Sequence[Ranking]) -> str:
    """Say on which machine the comparisons were made, in how many blocks, and how sure they are.

    Nothing where none was: cells of several runs are not compared.
    """
    by_task = [
        [c.comparison for c in one.cells if c.comparison and c.comparison.answer != "reference"]
        for one in ranked
    ]
    every = [one for some in by_task for one in some]
    if any(one.is_pair for one in ranked):
        by_task = [every]
    if len(results.runs) != 1 or not every:
        return ""
    least, most = (choose(one.blocks for one in every) for choose in (min, max))
    blocks = counted(most, "block") if least == most else f"{least} to {counted(most, 'block')}"
    (run,) = results.runs
    origin = "Simulated" if run.is_simulated else "Measured"
    where = f"{origin} on {_machine(run)}{f' in {blocks}' if most else ''}"
    # The answer is of effects where there are any, and its intervals are theirs.
    levels = [one.level for one in results.effects.values()]
    levels = levels or [one.interval.level for one in every if one.interval]
    if not levels:
        return f"{where}."
    together = max(sum(one.interval is not None for one in some) for some in by_task)
    holds = "the interval holds" if together == 1 else "the intervals hold together"
    if len(by_task) > 1:
        each = " together" if together > 1 else ""
        holds = f"the intervals of each workload hold{each}"
    return f"{where}; {holds} with {min(levels) * 100:.3g} %."


def _machine(run: RunInfo) -> str:
    """Name a machine; of one as it was found, what the title leaves open."""
    title, node = in_sentence(machine_name(run)), run.platform.get("node") or {}
    if not run.platform.get("as_found") or not node.get("cpu"):
        return title
    cpus = f", {counted(node['cpus'], 'CPU')}" if node.get("cpus") else ""
    return f"{title} ({node['cpu']}{cpus})"


def _clear(name: str, told: Comparison, reference: str) -> str:
    """Say how many times as fast as the reference a cell is, as its ranking does."""
    within = numbers.ratio_bracket(told.interval, told.ratio)
    if told.answer == "same":
        why = f": {told.why}" if told.why else ""
        return f"{name} and {reference} are equally fast {within}".rstrip() + f"{why}."
    if told.ratio is None:
        return f"{name} is {told.answer} than {reference}."
    ratio = numbers.ratio(told.ratio, told.interval)
    return f"{name} is {ratio} × as fast as {reference} {within}".rstrip() + "."


def _why_open(told: Comparison) -> str:
    """Say why a comparison is open, and how many blocks would answer it."""
    if told.answer == "contended":
        return f"somebody else used the machine ({told.why})."
    would = f"; about {told.blocks + told.more_blocks} would" if told.more_blocks else ""
    would_do = f"{would} do" if would else ""
    if not told.blocks:
        return f"the only block chose the reference{would_do}."
    if told.interval is None:
        few = "1 block is" if told.blocks == 1 else f"{told.blocks} blocks are"
        return f"{few} too few to tell{would_do}."
    return f"these {counted(told.blocks, 'block')} cannot tell{would}."


def _counted(others: Sequence[Comparison]) -> str:
    counts = Counter(_CLEAR.get(one.answer, "") for one in others)
    said = [
        f"{counts[word]} {'is' if counts[word] == 1 else 'are'} {word}"
        for word in _CLEAR.values()
        if counts[word]
    ]
    if counts[""] == len(others):
        return f"Of {len(others)} more it is open."
    if counts[""]:
        said.append(f"of {counts['']} it is open")
    return f"Of {len(others)} more, {', '.join(said)}."
