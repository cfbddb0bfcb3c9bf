"""Compare every pair of cells in a terminal: on request, as it takes many blocks."""

from __future__ import annotations

from itertools import combinations

from harness.analysis import numbers
from harness.analysis.blocks.paired_blocks import log_ratios, rates_by_block
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.stats.compare import Answer, all_pairs
from harness.verdicts.results import Interval
from reports.text.terminal import printable

_TIMES = {"faster": "than", "slower": "than", "same": "as"}


def render(results: Results) -> str:
    """Say of each pair of a ranking which is faster; of several runs none is paired."""
    if len(results.runs) > 1:
        return "Pairs are compared within one run: name one.\n"
    told = [
        line for ranking in results.rankings for line in _ranking(ranking, results.runs[0].seed)
    ]
    return "\n".join(told) + "\n" if told else "There are no two cells to compare.\n"


def _ranking(ranking: Ranking, seed: int) -> list[str]:
    cells = ranking.cells
    if len(cells) < 2:
        return []
    blocks = sorted(set().union(*map(rates_by_block, cells)))
    rows = {
        (one.key, other.key): [log_ratios(one, other).get(block) for block in blocks]
        for one, other in combinations(cells, 2)
    }
    names = {cell.key: printable(ranking.name(cell)) for cell in cells}
    lines = [
        _pair(names[first], names[second], answer)
        for (first, second), answer in all_pairs(rows, seed=seed).items()
    ]
    return [printable(f"{ranking.workload}, every pair:"), *lines]


def _pair(first: str, second: str, answer: Answer) -> str:
    if answer.answer not in _TIMES:
        return f"  {first} and {second}: cannot tell: {answer.why}"
    interval = None
    if answer.low is not None and answer.high is not None:
        interval = Interval(answer.low, answer.high, answer.level, "all pairs together")
    ratio = numbers.ratio(answer.ratio, interval)
    span = numbers.ratio_bracket(interval, answer.ratio)
    return f"  {first}: {answer.answer} {_TIMES[answer.answer]} {second}, {ratio} × {span}"
