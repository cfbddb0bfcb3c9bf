"""These tests hold bandwidths to the field's definitions, and predictions to the sweep they use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.results import Results
from harness.analysis.scaling.expected import expected
from harness.analysis.scaling.messages import bus_factor, collectives
from harness.analysis.scaling.prediction import forecasts
from harness.analysis.scaling.scaling import scaling_lines
from harness.analysis.tables import records
from harness.store.dataset import Dataset
from reports.text.answer import answer
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.0, window_noise=0.001, windows=10)
ALPHA_S, BETA_S = 1e-4, 1e-9


def swept(ranks: int, size: int) -> RecordedCell:
    step_s = 2 * (ranks - 1) * ALPHA_S + 2 * (ranks - 1) / ranks * size * BETA_S
    # recorded ranks do 16 units a step each; a message is made up of all of theirs
    factors = {"nodes": ranks, "strategy": "ddp", "message_bytes": size, "batch": size // ranks}
    behaviour = replace(QUIET, step_s=step_s)
    return RecordedCell("all-reduce", factors=factors, behaviour=behaviour, unit="bytes")


def recorded(folder: Path, *cells: RecordedCell) -> Results:
    return analyse(Dataset([write_run(folder, cells, Recording(block_noise=0.0, reference=None))]))


def test_the_bus_carries_what_a_ring_sends() -> None:
    assert bus_factor("all-reduce", 4) == 1.5
    assert bus_factor("all-gather", 4) == 0.75
    assert bus_factor("broadcast", 4) == bus_factor("point-to-point", 4) == 1.0


def test_algorithm_bandwidth_is_the_message_over_the_time(tmp_path: Path) -> None:
    told = recorded(tmp_path, swept(4, 2**20), swept(4, 2**24))
    rows = records(collectives(told))
    assert [row["message_bytes"] for row in rows] == [2**20, 2**24]
    for row in rows:
        took = 6 * ALPHA_S + 1.5 * row["message_bytes"] * BETA_S
        assert row["seconds"] == pytest.approx(took, rel=0.01)
        assert row["algorithm"] == pytest.approx(row["message_bytes"] / took / 1e9, rel=0.01)
        assert row["bus"] == pytest.approx(1.5 * row["algorithm"])


def test_what_a_link_carries_is_held_against_its_peak(tmp_path: Path) -> None:
    network = {"fabric": "Ethernet", "bandwidth": 1e9, "adapters": 2}
    told = Recording(reference=None, platform={"name": "ours", "network": network})
    one_node = RecordedCell(
        "all-reduce",
        factors={"ranks_per_node": 2, "strategy": "ddp", "message_bytes": 2**24},
        behaviour=QUIET,
        unit="bytes",
    )
    run = write_run(tmp_path, [swept(4, 2**24), one_node], told)
    by_ranks = {row["ranks"]: row for row in records(collectives(analyse(Dataset([run]))))}
    assert by_ranks[4]["peak_share"] == pytest.approx(by_ranks[4]["bus"] / 2)
    assert by_ranks[2]["peak_share"] is None  # no message left the node


def test_bandwidth_is_no_line_of_scaling_and_the_sweep_speaks_of_the_network(
    tmp_path: Path,
) -> None:
    sweep = [swept(ranks, size) for ranks in (2, 4) for size in (2**12, 2**24)]
    trained = [
        RecordedCell(
            factors={"nodes": ranks, "strategy": "ddp" if ranks > 1 else "none"},
            behaviour=replace(QUIET, step_s=0.02 * (1 + 0.01 * (ranks - 1))),
        )
        for ranks in (1, 2, 4)
    ]
    told = recorded(tmp_path, *sweep, *trained)
    assert [line.workload for line in scaling_lines(told)] == ["tinycnn"]
    (forecast,) = forecasts(told, [8])
    assert forecast.growth.exchange is not None


def trained(ranks: int, step_s: float) -> RecordedCell:
    factors = {"nodes": ranks, "strategy": "ddp" if ranks > 1 else "none"}
    return RecordedCell(factors=factors, behaviour=replace(QUIET, step_s=step_s))


def test_one_device_and_the_bare_network_say_what_efficiency_to_expect(tmp_path: Path) -> None:
    sweep = [swept(2, size) for size in (2**12, 2**24)]
    told = recorded(tmp_path, *sweep, trained(1, 0.020), trained(2, 0.0203))
    (row,) = records(expected(told))
    all_reduce_s = 2 * ALPHA_S + 4 * 34_000 * BETA_S
    assert row["network"] == "torch ddp"
    assert row["all_reduce_ms"] == pytest.approx(all_reduce_s * 1e3, rel=0.02)
    assert row["least"] == pytest.approx(0.020 / (0.020 + all_reduce_s), rel=0.01)
    assert row["efficiency"] == pytest.approx(0.020 / 0.0203, rel=0.01)
    assert row["predicted"] is None, "two counts leave none out"


def test_the_smaller_counts_predict_the_largest_on_the_page_too(tmp_path: Path) -> None:
    sweep = [swept(ranks, size) for ranks in (2, 4) for size in (2**12, 2**24)]
    cells = [trained(ranks, 0.02 * (1 + 0.01 * (ranks - 1))) for ranks in (1, 2, 4)]
    told = recorded(tmp_path, *sweep, *cells)
    by_count = {row["devices"]: row for row in records(expected(told))}
    assert sorted(by_count) == [2, 4]
    assert by_count[2]["predicted"] is None
    assert by_count[4]["predicted"] == pytest.approx(1 / 1.03, rel=0.02)


def test_without_a_sweep_and_a_third_count_nothing_is_expected(tmp_path: Path) -> None:
    assert expected(recorded(tmp_path, trained(1, 0.02), trained(2, 0.0203))).rows == ()


def test_which_size_of_message_is_fastest_is_no_question(tmp_path: Path) -> None:
    told = recorded(tmp_path, swept(2, 4), swept(2, 2**24))
    ((_, said),) = answer(told).sentences
    assert "16.0 MiB messages: 9" in said
    assert "4 B messages: 200 µs each" in said
    assert "claims" not in said
    assert {cell.comparison.answer for cell in told.cells if cell.comparison} == {"reference"}


def test_what_the_largest_messages_reach_is_held_to_the_claim_in_words(tmp_path: Path) -> None:
    claimed = Recording(reference=None, platform={"name": "x", "network": {"bandwidth": 2e9}})
    run = write_run(tmp_path, [swept(4, 4), swept(4, 2**24)], claimed)
    ((_, said),) = answer(analyse(Dataset([run]))).sentences
    assert " MB/s at most, on each link 49 % of the 2,000 MB/s that the profile claims; " in said
