"""Timelines are packed within a budget, keep their gaps, and are never finer than the clocks."""

from __future__ import annotations

import base64
import csv
import dataclasses
import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.analyse import analyse
from harness.analysis.evidence import Channel, Evidence, Mark, Recordings, Timeline
from harness.analysis.timelines.time_grid import binned
from harness.analysis.timelines.timelines import _Line, _shifted
from harness.sections.contract.blocks import Chart, walk
from harness.sections.contract.gather import phases_of, steps_of
from harness.sections.timelines import timeline_charts
from harness.store.contained import Contained
from harness.store.dataset import Dataset
from reports.charts.draw import draw
from reports.charts.heat import heat
from reports.page.page import render
from reports.page.raw_readings import write_readings
from reports.page.timeline_packing import packed, packed_together
from tests import runs
from tests.reports import samples


def unpacked(text: str) -> tuple[dict[str, object], np.ndarray]:
    """Read back what a page carries, as its script does."""
    told = json.loads(text)
    planes = np.frombuffer(gzip.decompress(base64.b64decode(told["data"])), np.uint8)
    words = planes.reshape(2, -1).astype(np.uint16)
    folded = (words[0] + (words[1] << 8)).reshape(-1, told["bins"])
    differences = (folded >> 1) ^ (0 - (folded & 1))
    codes = np.cumsum(differences, axis=1, dtype=np.uint16)
    low, quantum = np.array(told["rows"]).T
    values = low[:, None] + codes * quantum[:, None]
    values[codes == 65535] = np.nan
    values[codes == 65534] = told["far"]
    return told, values


def line(values: list[float], **changes: object) -> Timeline:
    channel = Channel("gpu0", [float(i) for i in range(len(values))], values)
    made = Timeline("busy", "%", 0.0, 100.0, (channel,), 1.0)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def recorded(*timelines: Timeline) -> Evidence:
    return Evidence(recordings=Recordings(timelines))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_readings_that_fit_come_back_within_the_quantum(values):
    told, rows = unpacked(packed(line(values), 10_000))
    assert told["kinds"] == 1
    quantum = (max(values) - min(values)) / 65534 + 1e-9
    assert np.allclose(rows[0], values, atol=quantum)


def test_one_spike_does_not_coarsen_the_rest_of_its_channel():
    readings = [20 + 0.37 * math.sin(i) for i in range(2000)]
    readings[700] = 1e9
    _, rows = unpacked(packed(line(readings), 10_000))
    assert rows[0][700] == 1e9
    usual = np.delete(rows[0] - readings, 700)
    assert np.abs(usual).max() < 1e-4


def test_a_channel_is_not_coarsened_by_another():
    channels = tuple(
        Channel(f"disk{i}", [0.0, 1.0, 2.0], [0.0, 0.123456 * scale, scale])
        for i, scale in enumerate((1.0, 1e9))
    )
    _, rows = unpacked(packed(line([0.0], channels=channels), 10_000))
    assert abs(rows[0][1] - 0.123456) < 1e-4


def test_what_an_instrument_reports_in_whole_steps_comes_back_exactly():
    readings = [float(i % 101) for i in range(500)]
    told, rows = unpacked(packed(line(readings), 10_000))
    assert told["rows"][0] == [0.0, 1.0]
    assert list(rows[0]) == readings


NOISE = np.random.default_rng(4).uniform(0.0, 10.0, 6000)


def test_beyond_the_budget_bins_keep_mean_least_and_most():
    told, rows = unpacked(packed(line(list(NOISE)), 1600))
    assert told["kinds"] == 3
    assert told["shown"].startswith("least, mean and most of each")
    mean, least, most = rows
    assert np.allclose(mean, 5, atol=3)
    assert least.max() < 3
    assert most.min() > 7


def test_readings_are_told_more_coarsely_before_any_is_left_out():
    told, rows = unpacked(packed(line(list(NOISE)), 12_000))
    assert told["kinds"] == 1
    assert told["shown"] == "every reading, one each 1 s, to 0.4 % of its line's range"
    assert np.abs(rows[0] - NOISE).max() < 10 / 250


def test_a_phase_before_the_first_reading_costs_no_reading():
    values = [40.0, 60.0, 50.0]
    begun_before = line(values, marks=(Mark("start-up", -4.0, 3.0),))
    told, rows = unpacked(packed(begun_before, 10_000))
    assert told["shown"] == "every reading, one each 1 s"
    assert [value for value in rows[0] if not math.isnan(value)] == values


def test_readings_days_apart_are_not_spread_over_every_second_between():
    channel = Channel("gpu0", [0.0, 1e6], [1.0, 2.0])
    told, _ = unpacked(packed(Timeline("busy", "%", 0.0, 100.0, (channel,), 1.0), 10_000))
    assert told["bins"] < 10_000


def test_what_small_timelines_leave_of_their_share_goes_to_large_ones():
    small, large = line([1.0, 2.0]), line(list(NOISE))
    alone = len(packed(large, 100_000))
    assert packed(large, (alone + 1000) // 2) != packed(large, 100_000)
    assert packed_together([large, small], alone + 1000) == [
        packed(large, 100_000),
        packed(small, 100_000),
    ]


def test_a_gap_stays_a_gap():
    timeline = line([5.0, math.nan, 7.0, 8.0])
    gapped = dataclasses.replace(timeline.channels[0], gaps_s=((2.5, 3.5),))
    _, rows = unpacked(packed(dataclasses.replace(timeline, channels=(gapped,)), 10_000))
    assert [bool(np.isnan(v)) for v in rows[0]] == [False, True, False, True]


def test_nothing_is_finer_than_the_clock_bound():
    assert binned(line([1.0] * 100, clock_bound_s=5.0), 1000).width_s >= 5.0


def test_a_timeline_nobody_read_is_empty_not_zero():
    channels = (Channel("gpu0", [], []),)
    page = render(samples.demo(), recorded(line([1.0], channels=channels)))
    assert "100 %" in page


def test_marks_stand_above_the_heat_map():
    timeline = samples.timeline()
    drawn = heat(timeline, binned(timeline, 100), name="t")
    assert ">warm-up</text>" in drawn
    assert drawn.index("steady") > 0


def test_steps_are_marked_where_they_can_be_told_apart():
    steps = tuple(Mark("step", at / 10, at / 10, "step") for at in range(300))
    few, many = (line([1.0] * 30, marks=steps[:count]) for count in (200, 300))
    told = [next(timeline_charts([one])) for one in (few, many)]
    assert ["v6" in draw(chart, {}) for chart in told] == [True, False]
    assert ["where each step began" in chart.note for chart in told] == [True, False]
    assert "v6" not in draw(told[0], {}, narrow=True)


def test_a_real_trials_steps_are_marks(tmp_path):
    results = analyse(dataset := Dataset([runs.write_run(tmp_path, [runs.RecordedCell()])]))
    (cell,) = results.cells
    phases, zero_ns = phases_of(dataset, cell, cell.trials[0])
    steps = steps_of(dataset, cell, cell.trials[0], zero_ns)
    assert len(steps) > 5
    assert {mark.kind for mark in steps} == {"step"}
    assert phases[0].start_s <= steps[0].start_s < steps[-1].start_s < phases[-1].end_s


def test_all_timelines_of_a_recording_have_one_axis():
    long = line([1.0] * 9, title="cores", recording="a trial on vm")
    short = line([1.0] * 3, title="memory", recording="a trial on vm")
    other = line([1.0] * 3, title="memory", recording="another on vm")
    folds = list(timeline_charts([long, short, other]))
    assert [fold.title for fold in folds] == ["a trial on vm", "another on vm"]
    charts = [block for block in walk(folds) if isinstance(block, Chart)]
    assert [">8 s<" in draw(chart, {}) for chart in charts] == [True, True, False]


def test_hostile_channel_names_cannot_end_the_script_that_carries_them():
    channel = Channel("</script><script>alert(1)", [0.0], [1.0])
    page = render(samples.demo(), recorded(line([1.0], channels=(channel,))))
    assert "</script><script>alert" not in page


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_64_gpus_for_an_hour_at_10_hz_stay_below_5_megabytes_with_every_reading(whole):
    draw = np.random.default_rng(64)
    times = np.arange(36_000) / 10.0
    channels = []
    for index in range(64):
        values = 90 + 8 * np.sin(times + index) + draw.normal(0, 3, times.size)
        values = np.where(times < 360, 0.0, np.clip(values, 0, 100))
        values = np.round(values) if whole else values
        gap = ((1440.0, 1800.0),) if index == 2 else ()
        channels.append(Channel(f"node{index // 4} gpu{index % 4}", times, values, gap))
    timeline = dataclasses.replace(samples.timeline(1, 3600.0, 10.0), channels=tuple(channels))
    page = render(samples.demo(), recorded(timeline))
    assert len(page.encode()) < 5_000_000
    assert '"shown":"every reading, one each 0.1 s' in page
    assert ("of its line's range" in page) is not whole


def test_a_last_reading_between_ticks_keeps_a_place_of_its_own():
    times = np.array([0.0, 0.11, 0.2, 0.31, 0.34])
    channel = _shifted(_Line("core", times, np.arange(5.0), 0.1), 0.0)
    assert channel.times_s == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert channel.gaps_s == ()


def test_zooming_is_carried_only_by_pages_that_have_timelines():
    assert "uPlot" not in render(samples.demo())
    assert "uPlot" in render(samples.demo(), samples.evidence())


def test_raw_readings_lie_beside_the_page_which_links_them(tmp_path):
    evidence = samples.evidence()
    place = tmp_path / "report.html"
    readings = write_readings(evidence.timelines, place, Contained(tmp_path))
    raw = readings["timeline-1"]
    page = render(samples.demo(), evidence, place=place, readings=readings)
    assert f'href="{raw}"' in page
    text = gzip.decompress((tmp_path / raw).read_bytes()).decode()
    lines = list(csv.reader(text.splitlines()))
    assert lines[0] == ["channel", "t_s", "GPU utilisation, %"]
    timeline = evidence.timelines[0]
    assert len(lines) == 1 + sum(len(channel.values) for channel in timeline.channels)
    assert float(lines[700][2]) == pytest.approx(timeline.channels[1].values[99])
