"""Hold the input's ladders, table and goodput to what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.files.goodput import goodput
from harness.analysis.files.input import input_table
from harness.analysis.files.input_ladders import ladders
from harness.analysis.results import Results
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult, Estimate
from harness.worker.input.evidence import page_cache
from reports.page.page import render
from tests.reports import samples
from tests.scales import parted


def of(made: Results, *all_factors: dict[str, Any]) -> Results:
    """Give a study cells that read the same files, with these factors and rates."""
    told = InputResult(cache="cold", cold_fraction=1.0, wait_share=0.01, bytes_per_s=1.5e6)
    files = {"format": "raw", "samples": 256, "cache": "cold", "batch": 32, "tier": "hdd"}
    cells = []
    for number, factors in enumerate(all_factors):
        factors = {**files, **factors}
        told = replace(told, busy_cores=factors.pop("busy_cores", None), cpus=2.0)
        rate, own = factors.pop("rate", 400.0), {"workload": "read-small-pictures"}
        own = {**own, "framework": "null", "content": "small-pictures", **factors.pop("cell", {})}
        cell = made.cells[0]
        trials = tuple(
            replace(one, input=told, rate=rate, cell_key=str(number)) for one in cell.trials
        )
        cells.append(
            replace(
                cell,
                key=str(number),
                factors=factors,
                scale=parted(factors)[0],
                trials=trials,
                rate=Estimate(rate, "samples/s", len(trials), None),
                comparison=None,
                **own,
            )
        )
    varied = dict.fromkeys(name for factors in all_factors for name in factors)
    return replace(made, cells=tuple(cells), varied=tuple(varied.keys() - {"cell", "rate"}))


TRAINED = {"workload": "neuron-inverter", "framework": "torch", "content": "traces"}
FILES = {"input": "files", "reader": "pread", "cell": TRAINED}
MADE = {"input": "synthetic", "cell": {**TRAINED, "content": None}}


def trained(rate: float, alone: float, *, verdict: str = "valid", **other: Any) -> Results:
    """Give a training from files, and the same on batches that cost nothing, trial by trial."""
    told = of(samples.demo(), {**FILES, "rate": rate}, {**MADE, **other, "rate": alone})
    trials = tuple(
        replace(one, verdict=verdict, evidence=("a neighbour",), input=None)
        for one in told.cells[1].trials
    )
    return replace(told, cells=(told.cells[0], replace(told.cells[1], trials=trials)))


def said(told: Results) -> tuple[float | None, str]:
    found = goodput(told.cells[0], told)
    assert found is not None
    return found.share, found.why


def test_goodput_is_a_share_of_the_same_training_in_the_same_blocks() -> None:
    told = trained(60.0, 100.0)
    assert said(told) == (pytest.approx(0.6), "")
    slow_blocks = tuple(
        replace(one, rate=one.rate and one.rate / (1 + one.block)) for one in told.cells[1].trials
    )
    both = tuple(
        replace(one, rate=one.rate and one.rate / (1 + one.block)) for one in told.cells[0].trials
    )
    cells = (replace(told.cells[0], trials=both), replace(told.cells[1], trials=slow_blocks))
    assert said(replace(told, cells=cells)) == (pytest.approx(0.6), "")


def test_a_goodput_that_cannot_be_is_no_number_but_says_what_was_slowed() -> None:
    share, why = said(trained(390.0, 100.0))
    assert share is None
    assert why.startswith("cannot tell: 3.90 × as fast as the same training that reads nothing")
    assert "nothing was seen that explains it" in why
    assert "(a neighbour)" in said(trained(390.0, 100.0, verdict="contended"))[1]
    page = input_table(trained(390.0, 100.0))
    assert 3.9 not in page.rows[0]


def test_a_disturbed_reference_bounds_the_goodput_from_above() -> None:
    share, why = said(trained(60.0, 100.0, verdict="contended"))
    assert share is None
    assert why.startswith("at most 60 %: the same training that reads nothing was itself disturbed")
    assert said(trained(60.0, 100.0, verdict="noisy")) == (pytest.approx(0.6), "")


def test_a_goodput_within_a_tenth_of_all_loses_nothing_that_shows() -> None:
    share, why = said(trained(103.0, 100.0))
    assert share is None
    assert why == "nothing is lost that shows: 1.03 × the same training that reads nothing"


@pytest.mark.parametrize(
    "other", [{"batch": 64}, {"cell": {**TRAINED, "options": {"fused": False}}}, {"input": "files"}]
)
def test_another_training_says_nothing_of_goodput(other: dict[str, Any]) -> None:
    assert said(trained(60.0, 100.0, **other)) == (
        None,
        "needs the same training with input = synthetic",
    )


BURN = {"reader": "threads", "compute": "burn", "compute_ms": 100}


def test_a_busy_processor_raises_utilisation_and_lowers_goodput() -> None:
    told = of(samples.demo(), {**BURN, "rate": 160.0})
    assert said(told) == (pytest.approx(0.1 * 160.0 / 32), "")
    assert "99 %" in render(told)


def test_the_last_batch_of_an_epoch_computes_for_as_long_as_a_full_one() -> None:
    assert said(of(samples.demo(), {**BURN, "samples": 48, "rate": 120.0})) == (
        pytest.approx(2 * 0.1 / (48 / 120.0)),
        "",
    )


def test_the_stand_in_of_a_rank_computes_once_for_all_its_devices() -> None:
    both = {**BURN, "devices_per_rank": 2, "samples": 64, "rate": 240.0}
    assert said(of(samples.demo(), both)) == (pytest.approx(0.1 / (64 / 240.0)), "")


def test_a_stand_in_that_took_less_than_it_was_asked_to_gives_no_goodput() -> None:
    share, why = said(of(samples.demo(), {**BURN, "rate": 400.0}))
    assert share is None
    assert why == "cannot tell: an epoch took 80 % of the time that its stand-in was asked to take"


def test_a_ladder_ends_in_each_model_and_stand_in_and_in_decoding() -> None:
    told = of(
        samples.demo(),
        {"reader": "pread", "rate": 900.0},
        {"reader": "threads", "rate": 800.0},
        {**BURN, "rate": 300.0},
        {**BURN, "compute_ms": 50, "rate": 500.0},
        {"reader": "tf-data", "decode": True, "rate": 90.0, "cell": {"framework": "tensorflow"}},
    )
    made = ladders(told)
    what = "256 small-pictures in raw files on hdd"
    ends = (" for 100 ms burn", " for 50 ms burn", ", decoded")
    assert [(one.title, one.state) for one in made] == [(what + end, "cold") for end in ends]
    assert [[rung.name for rung in one.rungs] for one in made] == [
        ["bytes read: pread", "format parsed: threads", top]
        for top in (
            "loader and model: threads + 100 ms burn",
            "loader and model: threads + 50 ms burn",
            "pictures decoded: tensorflow tf-data",
        )
    ]
    page = render(told)
    assert "What was read, where from, and how long was waited" in page
    assert made[0].title in page


def test_a_model_that_is_fed_decoded_pictures_stands_on_their_decoding() -> None:
    decoded = {"reader": "tf-data", "decode": True}
    told = of(
        samples.demo(),
        {"reader": "pread", "rate": 900.0},
        {**decoded, "rate": 90.0, "cell": {"framework": "tensorflow"}},
        {**decoded, "input": "files", "rate": 9.0, "cell": {"workload": "alexnet-chien"}},
    )
    made = next(one for one in ladders(told) if one.title.endswith(" for alexnet-chien"))
    assert [rung.name.partition(":")[0] for rung in made.rungs] == [
        "bytes read",
        "pictures decoded",
        "loader and model",
    ]


@pytest.mark.parametrize(
    ("other", "title"),
    [
        ({"stripe_count": 4}, "on hdd over 4 servers"),
        ({"stripe_mb": 16}, "on hdd in stripes of 16 MiB"),
        ({"ranks_per_node": 2}, "on hdd by 2 ranks"),
        ({"container": True}, "on hdd in a container"),
        ({"tier": "ssd"}, "on ssd"),
        ({"samples": 512}, "512 small-pictures"),
        ({"shuffle": "global"}, "on hdd shuffled"),
        ({"shuffle": "file"}, "on hdd shuffled by file"),
        ({"cell": {"own_files": "/home/u/flowers"}}, "256 samples under /home/u/flowers in raw"),
    ],
)
def test_rungs_of_other_files_or_readers_never_stand_on_one_ladder(
    other: dict[str, Any], title: str
) -> None:
    two = ({"reader": "pread"}, {"reader": "threads"})
    assert ladders(of(samples.demo(), two[0], {**two[1], **other})) == ()
    both = ladders(of(samples.demo(), *two, *({**one, **other} for one in two)))
    assert len(both) == 2
    assert title in both[1].title


def test_a_rung_faster_than_what_it_stands_on_has_no_share_of_it() -> None:
    told = of(samples.demo(), {"reader": "pread", "rate": 100.0}, {"reader": "threads"})
    page = render(told)
    assert "400 %" not in page
    assert "is faster than what it stands on" in page


def cell_names(told: Results) -> dict[str, list[CellResult]]:
    return {ranking.workload: list(ranking.cells) for ranking in told.rankings}


def test_a_ladder_whose_rungs_differ_in_their_batches_says_so() -> None:
    told = of(samples.demo(), {"reader": "pread"}, {"reader": "threads", "batch": 8, "rate": 90.0})
    (made,) = ladders(told)
    assert [rung.name for rung in made.rungs] == [
        "bytes read: pread, batches of 32",
        "format parsed: threads, batches of 8",
    ]


def test_a_ladder_that_no_second_witness_calls_cold_says_so() -> None:
    rungs = {"reader": "pread", "rate": 900.0}, {"reader": "threads", "rate": 300.0}
    told = of(samples.demo(), *rungs)
    cells = tuple(
        replace(
            cell,
            trials=tuple(
                replace(one, input=one.input and replace(one.input, cache=page_cache.COLD_HERE))
                for one in cell.trials
            ),
        )
        for cell in told.cells
    )
    (made,) = ladders(replace(told, cells=cells))
    assert made.state == "cold here; beneath unknown"
    assert "Nobody counts what lies beneath" in made.source
    assert "cold means cold" not in made.source


def test_what_only_reads_is_ranked_apart_from_what_computes_beside_it() -> None:
    told = of(samples.demo(), {"reader": "pread"}, {"reader": "threads"}, BURN)
    assert {name: len(cells) for name, cells in cell_names(told).items()} == {
        "read-small-pictures": 2,
        "read-small-pictures + 100 ms burn": 1,
    }


def test_a_loader_that_waits_for_nobody_but_itself_is_told_with_its_processors() -> None:
    loader = {"reader": "threads", "prefetch": 2, "reader_threads": 4, "rate": 300.0}
    told = of(
        samples.demo(),
        {"reader": "pread", "reader_threads": 4, "rate": 900.0},
        {**loader, "busy_cores": 0.5},
    )
    (made,) = ladders(told)
    assert made.bottleneck == "harness-bound"
    assert "Busy of the processors that it could use: loader 25 %." in made.source
    (one,) = ladders(of(samples.demo(), {"reader": "pread", "rate": 310.0}, loader))
    assert one.bottleneck == "storage-bound"


def test_a_loader_with_few_threads_waits_for_storage_as_bare_bytes_with_few_do() -> None:
    told = of(
        samples.demo(),
        {"reader": "pread", "reader_threads": 8, "rate": 900.0},
        {"reader": "pread", "reader_threads": 1, "rate": 110.0},
        {"reader": "threads", "reader_threads": 1, "rate": 105.0, "busy_cores": 0.1},
    )
    (made,) = ladders(told)
    assert made.bottleneck == "storage-bound"


def test_what_fills_no_batch_of_a_training_stands_in_the_table() -> None:
    told = of(samples.demo(), {**FILES, "samples": 100})
    trials = tuple(
        replace(one, input=replace(one.input, delivered=96.0)) if one.input else one
        for one in told.cells[0].trials
    )
    table = input_table(replace(told, cells=(replace(told.cells[0], trials=trials),)))
    place = [column.key for column in table.columns].index("left_out")
    assert table.rows[0][place] == 4
