"""Cells that differ in one number only form a line, held against the least of it."""

from __future__ import annotations

import dataclasses
from statistics import geometric_mean

import pytest

from harness.analysis.effects.growth import growths, in_words
from harness.analysis.results import Results
from harness.analysis.tables import records
from harness.sections.contract.section import sections, table
from harness.verdicts.results import CellResult, Gate
from reports.page.page import render
from reports.text.terminal import render as in_terminal
from tests.reports import samples


def _read(times: dict[int, float], *, decode: bool, **changes: object) -> list[CellResult]:
    """Cells that so many threads read; every block shares a factor of its own."""
    cells = []
    for threads, ratio in times.items():
        one = samples.cell("read-pictures", "tensorflow", "fp32", 100.0, None)
        trials = tuple(
            dataclasses.replace(t, rate=100.0 * ratio * (1 + 0.1 * t.block)) for t in one.trials
        )
        rate = geometric_mean([t.rate for t in trials if t.rate])
        assert one.rate
        cells.append(
            dataclasses.replace(
                one,
                key=f"{decode}{threads}{sorted(changes.items())}",
                trials=trials,
                rate=dataclasses.replace(one.rate, value=rate),
                factors={**one.factors, "reader_threads": threads, "decode": decode, **changes},
            )
        )
    return cells


def _results(*cells: CellResult, varied: tuple[str, ...] = ("reader_threads", "decode")) -> Results:
    demo = samples.demo()
    return dataclasses.replace(demo, cells=cells, varied=varied, warnings=(), holes=())


DECODED = {8: 2.3, 1: 1.0, 2: 1.8, 4: 2.25}
PLAIN = {1: 1.0, 2: 1.5, 4: 1.6, 8: 0.8}


def test_each_line_is_held_against_the_least_block_by_block() -> None:
    told = _results(*_read(DECODED, decode=True), *_read(PLAIN, decode=False))
    lines = {line.name: line for line in growths(told)}
    assert len(lines) == 2
    decoded = lines["tensorflow decoded"]
    assert [one.count for one in decoded.levels] == [1, 2, 4, 8]
    assert [one.ratio for one in decoded.levels] == pytest.approx([1.0, 1.8, 2.25, 2.3])
    assert decoded.first.interval is None
    last = decoded.levels[-1].interval
    assert last is not None  # what all cells of a block share is in no ratio
    assert (last.low, last.high) == pytest.approx((2.3, 2.3))


def test_words_name_the_best_and_what_the_most_brings() -> None:
    told = _results(*_read(DECODED, decode=True), *_read(PLAIN, decode=False))
    said = {line.name: in_words(line) for line in growths(told)}
    assert said["tensorflow decoded"].startswith("2.3")
    assert said["tensorflow decoded"].endswith("with 8 reader threads as with 1 reader thread")
    plain = next(words for name, words in said.items() if name != "tensorflow decoded")
    assert "with 4 reader threads as with 1 reader thread, and 0.8" in plain
    slower = growths(_results(*_read({1: 1.0, 2: 0.9, 3: 0.8}, decode=True)))
    assert in_words(slower[0]).startswith("fastest with 1 reader thread; 0.8")


def test_too_few_blocks_are_named_beside_what_they_measured() -> None:
    cells = [dataclasses.replace(one, trials=one.trials[:2]) for one in _read(DECODED, decode=True)]
    (line,) = growths(_results(*cells))
    assert in_words(line).endswith("as with 1 reader thread, by 2 blocks: too few to be sure")


def test_what_blocks_cannot_tell_is_not_said() -> None:
    cells = _read({1: 1.0, 2: 1.0, 4: 1.0}, decode=True)
    for number, one in enumerate(cells):
        trials = tuple(
            dataclasses.replace(t, rate=(t.rate or 0.0) * (1 + 0.05 * number * (-1) ** t.block))
            for t in one.trials
        )
        cells[number] = dataclasses.replace(one, trials=trials)
    (line,) = growths(_results(*cells))
    told = "no difference can be told from 1 reader thread to 4 reader threads"
    assert in_words(line) == told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_read({1: 1.0, 2: 2.0}, decode=True), []),
        (_read({1: 1.0, 2: 2.0}, decode=True), _read({4: 3.0}, decode=False)),
        (_read({1: 1.0, 2: 2.0}, decode=True), _read({4: 3.0}, decode=True, batch=64)),
    ],
    ids=["two levels", "another setting", "another batch"],
)
def test_fewer_than_three_levels_alike_are_no_line(
    one: list[CellResult], other: list[CellResult]
) -> None:
    told = _results(*one, *other, varied=("reader_threads", "decode", "batch"))
    assert growths(told) == []
    assert 'id="growth"' not in render(told)


def test_devices_seeds_and_cells_out_of_ranking_form_no_line() -> None:
    assert growths(samples.scaled()) == []
    seeds = [
        dataclasses.replace(
            samples.cell("alexnet", "torch", "fp32", 10.0, None),
            key=str(n),
            factors={"cell_seed": n, "batch": 16},
        )
        for n in (1, 2, 3)
    ]
    assert growths(_results(*seeds, varied=("cell_seed",))) == []
    wrong = [
        dataclasses.replace(one, gate=Gate("differs", "fc"))
        if one.factors["reader_threads"] == 4
        else one
        for one in _read({1: 1.0, 2: 2.0, 4: 9.0}, decode=True)
    ]
    assert growths(_results(*wrong)) == []


def test_a_number_may_begin_at_zero() -> None:
    cells = [
        dataclasses.replace(one, factors={**one.factors, "prefetch": count}, key=f"p{count}")
        for count, one in enumerate(_read({1: 1.0, 2: 1.1, 3: 1.2}, decode=True))
    ]
    alike = [
        dataclasses.replace(one, factors={**one.factors, "reader_threads": 1}) for one in cells
    ]
    told = _results(*alike, varied=("prefetch",))
    (line,) = growths(told)
    assert (line.factor, line.first.count) == ("prefetch", 0)
    assert 'data-name="growth-1"' in render(told)


def test_page_terminal_and_table_say_the_same() -> None:
    told = _results(*_read(DECODED, decode=True), *_read(PLAIN, decode=False))
    section = render(told).split('<section id="growth">')[1].split("</section>")[0]
    assert ">reader threads</text>" in section
    assert "2 ×</text>" in section
    rows = records(table(sections(told), "growth-1"))
    assert {(row["cell"], row["count"]): row["ratio"] for row in rows}[
        "tensorflow decoded", 8
    ] == pytest.approx(2.3)
    said = " ".join(in_terminal(told).split())
    assert "How rates change with a number:" in said
    assert "with 8 reader threads as with 1 reader thread" in said
