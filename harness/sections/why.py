"""The section of why cells are slower or faster than their reference, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.explain.step_shares import UNEXPLAINED
from harness.analysis.explain.words import (
    beside,
    causes,
    floor_share,
    headline,
    milliseconds,
    operations_words,
    part_name,
)
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import (
    Block,
    Chart,
    Facts,
    Fall,
    Fold,
    Gist,
    Group,
    Note,
    Waterfall,
)
from harness.sections.contract.section import Section
from harness.units import counted
from harness.verdicts.results import scaled

_COLUMNS = (
    Column("slower", "slower cell", "name"),
    Column("faster", "faster cell", "name"),
    Column("part", "part of the step", "name"),
    Column("slower_s", "time in the slower", "seconds"),
    Column("faster_s", "time in the faster", "seconds"),
    Column("difference_ms", "difference, ms", "number"),
    Column("interval_ms", "interval", "interval"),
    Column("share", "of the difference", "share"),
)
_OPERATIONS = (
    Column("slower_operations", "slower cell's operations", "long"),
    Column("faster_operations", "faster cell's operations", "long"),
)
_HOW = (
    "Each step is divided among the network's layers by an untimed job that traces it; a part's "
    "time is its share times the step as it was timed, in the blocks that both cells have: a step "
    "may differ a little from pair to pair. Parts add up to the difference, with what "
    "carries no layer's mark as “unexplained”. Layers that one of two cells computes as one are "
    "told together. The intervals of a pair hold together; without one, blocks are too few."
)
_DRAWN = (
    "From the step of the faster cell, above, to that of the slower one: each bar begins where the "
    "one above it ends. A whisker shows where the end of its bar plausibly lies."
)

_MOST_PAIRS = 10
_FOR_OTHERS = (
    "Of {} pairs the first {} are taken apart here, folded; `bakeoff explain RUN A B` does it "
    "for any two."
)
_OF_FLOORS = (
    Column("slower_of_least", "slower cell, of the quickest seen here", "share"),
    Column("faster_of_least", "faster cell, of the quickest seen here", "share"),
)
_FLOORS = (
    "The quickest seen here is the least that was measured on this machine for that layer at the "
    "same shape, batch and precision: alone, or in the steps of two cells of this run. One that "
    "took clearly less in either step has no share: it was computed together with its neighbours, "
    "or timed alone on a busy machine."
)


def _chart(of: Explanation, first: str, second: str, number: int) -> Chart:
    """Draw the way from the faster cell's step to the slower one's, with the table of its parts."""
    falls = tuple(
        Fall(
            part_name(one),
            one.difference_s,
            one.interval,
            "{} ms {}".format(*milliseconds(one)).rstrip(),
            is_named=one.key != UNEXPLAINED,
        )
        for one in of.terms
    )
    drawing = Waterfall((second, of.second_step_s), (first, of.first_step_s), falls)
    return Chart(drawing, _table(of, first, second, f"why-{number}"), note=_DRAWN)


def _table(of: Explanation, first: str, second: str, name: str) -> Table:
    rows = []
    has_floors = _has_floors(of)
    for one in of.terms:
        shares = (
            floor_share(one.first_s, one.first_floor_s),
            floor_share(one.second_s, one.second_floor_s),
        )
        found = one.interval
        rows.append(
            (
                first,
                second,
                part_name(one),
                one.first_s,
                one.second_s,
                one.difference_s * 1e3,
                found and scaled(found, 1e3),
                one.difference_s / of.difference_s,
                *(shares if has_floors else ()),
                operations_words(one.first_operations) or None,
                operations_words(one.second_operations) or None,
            )
        )
    columns = (*_COLUMNS, *(_OF_FLOORS if has_floors else ()), *_OPERATIONS)
    return Table(name, f"Why {first} is slower than {second}", columns, tuple(rows))


def _has_floors(of: Explanation) -> bool:
    return any(one.first_floor_s or one.second_floor_s for one in of.terms)


def _explanations(results: Results, evidence: Evidence) -> Iterator[tuple[Explanation, str, str]]:
    """Explain each task's reference against its other cells, in a page of one run."""
    read, names = evidence.attributions or {}, results.names
    for ranking in results.rankings:
        reference = ranking.reference
        for cell in ranking.cells:
            if (
                reference is None
                or cell.key == reference.key
                or isinstance(read.get(cell.key), str)
            ):
                continue
            found = explain(
                cell, reference, read, seed=results.runs[0].seed, floors=evidence.floors
            )
            first, second = found.first, found.second
            yield found, names[first.run, first.key], names[second.run, second.key]


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    explained = list(_explanations(results, evidence))
    if not explained:
        return
    answered = [one for one in explained if not one[0].refusal]
    yield Gist(f"{len(answered)} of {counted(len(explained), 'pair')} can be taken apart")
    yield Note(_HOW)
    if any(_has_floors(one) for one, _, _ in explained):
        yield Note(_FLOORS)
    groups = tuple(
        Group(
            (
                Note(headline(one, first, second)),
                *(Note(sentence) for sentence in causes(one, first, second)),
                _chart(one, first, second, number),
                Note(" ".join(beside(one, first, second))),
            ),
            f"{first} and {second}",
        )
        for number, (one, first, second) in enumerate(answered[:_MOST_PAIRS], start=1)
    )
    if len(answered) > _MOST_PAIRS:
        yield Note(_FOR_OTHERS.format(len(answered), len(groups)))
        yield Fold("Part by part", groups, f"{len(groups)} pairs")
    else:
        yield from groups
    refused = (one for one in explained if one[0].refusal)
    yield Facts(
        tuple((f"{pair[1]} and {pair[2]}", _why_not(*pair)) for pair in refused), is_prose=True
    )


def _why_not(one: Explanation, first: str, second: str) -> str:
    """Say why a pair is not explained, and what its cells did not do that was asked for."""
    return " ".join((f"{one.refusal}.", *causes(one, first, second)))


SECTION = Section(
    "Why cells are slower", 450, _blocks, contents="Why", needs=frozenset({"attributions"})
)
