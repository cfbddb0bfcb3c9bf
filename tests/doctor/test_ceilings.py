"""Check what a calibration plans, reads and write, and where cells then lie."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.analysis.context.roofline import RoofCeiling, RoofPoint, roof
from harness.analysis.results import Results
from harness.doctor.ceilings import Measured, Session, measured, peaks, sessions, with_ceilings
from harness.errors import FaultyFile, UsageError
from harness.platform.platform import load_platform
from harness.store.record_readers.ceilings import Ceiling, Conditions, Reached
from harness.worker.contracts import Unsupported
from harness.worker.scale import Scale
from harness.worker.storage import StorageActivity
from reports.charts.roofline import roofline
from tests.needs import framework
from tests.reports import samples

ROOT = Path(__file__).resolve().parents[2]


def test_each_memory_gets_a_session_of_its_own_and_tiers_are_a_factor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.toml").write_text(
        'title = "mine"\nextends = "knl-7250-flat"\n[storage.scratch]\npath = "/scratch"\n'
    )
    monkeypatch.chdir(tmp_path)
    planned = {
        one.name: one
        for one in sessions(
            load_platform("mine"), framework="torch", device="cpu", trials=3, until="3 s"
        )
    }
    assert list(planned) == ["kernels", "memory-DDR", "memory-MCDRAM", "storage"]
    assert planned["memory-DDR"].platform.binding.memory == "local"
    assert planned["memory-MCDRAM"].platform.binding.memory == "fast-only"
    assert planned["storage"].study.matrix.axes["tier"] == ("scratch",)
    assert 'tier = ["scratch"]' in planned["storage"].study.text


def test_a_platform_that_a_scheduler_starts_is_calibrated_on_its_node() -> None:
    with pytest.raises(UsageError, match=r"starts jobs through lsf(.|\n)*on a compute node"):
        list(sessions(load_platform("summit"), framework="t", device="gpu", trials=1, until="1 s"))


def kernels() -> Session:
    local = load_platform("local")
    return next(sessions(local, framework="torch", device="cpu", trials=1, until="1 s"))


@pytest.mark.parametrize("framework", ["pytroch", 'torch"\ntitle = "x'])
def test_a_framework_that_there_is_not_is_refused_by_name(framework: str) -> None:
    planned = sessions(
        load_platform("local"), framework=framework, device="cpu", trials=1, until="1 s"
    )
    with pytest.raises(FaultyFile, match="no framework is called"):
        next(planned)


def ceilings(*trials: object) -> list[Measured]:
    demo = samples.demo()
    cell = replace(
        demo.cells[0],
        workload="gemm",
        unit="FLOP",
        factors={"precision": "fp32", "device": "cpu"},
        trials=trials,
    )
    results: Results = replace(demo, cells=(cell,))
    return measured(results, kernels())


def test_a_ceiling_is_the_median_of_the_trials_that_nothing_disturbed() -> None:
    loud = samples.trial("r", "k", 4, 9e9, counted=False, verdict="contended")
    quiet = [samples.trial("r", "k", block, rate) for block, rate in ((1, 3e9), (2, 4e9), (3, 8e9))]
    (one,) = ceilings(*quiet, loud)
    assert (one.name, one.value, one.trials, one.disturbed) == ("cpu-gemm-fp32", 4e9, 3, None)


def test_where_all_trials_were_disturbed_the_best_counts_and_the_source_says_so() -> None:
    loud = [
        samples.trial("r", "k", block, rate, counted=False, verdict="contended")
        for block, rate in ((1, 3e9), (2, 4e9))
    ]
    (one,) = ceilings(*loud)
    assert (one.value, one.disturbed) == (4e9, "contended")
    table = one.table("a run")
    assert table["compute"] == "4 GFLOP/s"
    assert table["source"].endswith("as all were contended: at least so much")


def test_the_peak_of_a_precision_is_that_of_the_best_kernel() -> None:
    (peak,) = peaks(
        [
            Measured("cpu-gemm-fp32", 4e9, "FLOP/s", 3, None),
            Measured("cpu-convolution-fp32", 5e9, "FLOP/s", 3, None),
            Measured("memory-DDR", 9e9, "bytes/s", 3, None),
        ]
    )
    assert (peak.name, peak.value) == ("cpu-fp32", 5e9)
    assert peak.table("a run")["source"] == "convolution: a run, 3 trials"


def test_calibrating_again_replaces_ceilings_and_keeps_the_rest(tmp_path: Path) -> None:
    text = (
        '# mine\ntitle = "x"\n\n[ceilings.cpu-fp32]\ncompute = "1 GFLOP/s"\ntag = "measured"\n'
        'source = "before"\n\n[ceilings.read-disk]\ntag = "unknown"\n'
    )
    table = {"compute": "2 GFLOP/s", "tag": "measured", "source": "now"}
    made = with_ceilings(text, {"cpu-fp32": table})
    path = tmp_path / "x.toml"
    path.write_text(made)
    platform = load_platform(str(path))
    assert platform.ceilings["cpu-fp32"].compute == 2e9
    assert platform.ceilings["read-disk"].tag == "unknown"
    assert made.startswith("# mine\n")
    assert "before" not in made


def test_a_cell_lies_below_the_roof_of_its_machine() -> None:
    demo = samples.demo()
    told = {
        "cpu-fp32": {"compute": 1e12, "tag": "measured", "source": "x"},
        "cpu-bf16": {"compute": 2e12, "tag": "measured", "source": "x"},
        "memory-DDR": {"bandwidth": 2e10, "tag": "measured", "source": "x"},
        "gpu-fp32": {"compute": 9e12, "tag": "declared", "source": "x"},
    }
    runs = tuple(replace(run, platform={**run.platform, "ceilings": told}) for run in demo.runs)
    cells = tuple(replace(cell, unit="images") for cell in demo.cells)
    ceilings_drawn, points = roof(replace(demo, runs=runs, cells=cells))
    drawn = {one.name: one for one in ceilings_drawn}
    assert "gpu-fp32" not in drawn
    assert drawn["memory-DDR"].bytes_per_s == 2e10
    assert points
    for point in points:
        assert point.name.endswith("%)")
        assert point.intensity > 0


def test_what_a_run_measured_for_itself_is_the_roof_where_the_profile_states_none() -> None:
    demo = samples.demo()
    (one, *_) = (cell for cell in demo.cells if cell.rate and cell.factors["precision"] == "fp32")
    results = replace(demo, cells=(replace(one, unit="images"),))
    under = Conditions("torch", "digest", "cpu", "fp32", one.factors.get("threads"))

    def kept(cache_bytes: int) -> tuple[Ceiling, ...]:
        found = Reached("gemm", "FLOP", 1e9, None), Reached("triad", "bytes", 1e10, cache_bytes)
        return tuple(Ceiling(under, reached, "a run/cells/k/ceilings", 1) for reached in found)

    drawn, (point,) = roof(results, kept(1 << 20))
    assert {(one.flops, one.bytes_per_s, one.how) for one in drawn} == {
        (1e9, None, "measured"),
        (None, 1e10 * (4 / 3), "measured"),  # a line that is written is read before
    }
    assert point.share == pytest.approx(point.flops / 1e9)
    assert roof(results, kept(1 << 40)) == ((), ())  # it fits into the caches
    together = replace(one, unit="images", scale=Scale(ranks_per_node=2, batch_per_device=8))
    assert roof(replace(demo, cells=(together,)), kept(1 << 20)) == ((), ())


def test_a_cell_of_several_nodes_lies_at_what_one_of_them_reaches() -> None:
    demo = samples.demo()
    told = {"cpu-fp32": {"compute": 1e12, "tag": "measured", "source": "x"}}
    runs = tuple(replace(run, platform={**run.platform, "ceilings": told}) for run in demo.runs)
    (one, *_) = (cell for cell in demo.cells if cell.rate and cell.factors["precision"] == "fp32")
    alone = replace(one, unit="images", scale=Scale(batch_per_device=8))
    together = replace(alone, scale=Scale(nodes=4, batch_per_device=8))
    reached = [roof(replace(demo, runs=runs, cells=(cell,)))[1][0] for cell in (alone, together)]
    assert reached[1].flops == pytest.approx(reached[0].flops / 4)


def test_every_cell_is_drawn_within_the_axes_of_its_roof() -> None:
    ceilings = (RoofCeiling("cpu-fp32", 1e12, None, "declared"),)
    points = tuple(
        RoofPoint(str(flops), 10.0, flops, 0.5, "a", "jax") for flops in (1e9, 5e12, 9e13)
    )
    drawn = roofline(ceilings, points, {"jax": 1}, name="roofline")
    found = re.findall(r'<circle class="s\d" cx="[\d.]+" cy="([-\d.]+)"', drawn)
    heights = [float(one) for one in found]
    assert len(heights) == len(points)
    assert all(20 <= one <= 376 for one in heights)


def test_names_of_cells_stand_beside_the_plot_and_apart_however_many_there_are() -> None:
    ceilings = (RoofCeiling("cpu-fp32", 1e12, None, "declared"),)
    points = tuple(RoofPoint(f"cell {at}", 10.0, 1e9, 0.5, "a", "jax") for at in range(60))
    drawn = roofline(ceilings, points, {"jax": 3}, name="roofline")
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>cell \d+</text>', drawn)
    end = max(float(one) for one in re.findall(r'class="axis"[^>]* x2="([\d.]+)"', drawn))
    assert all(float(across) > end for across, _ in names)
    levels = sorted(float(level) for _, level in names)
    assert len(levels) == 20
    assert all(after - before >= 12 for before, after in pairwise(levels))
    assert levels[-1] <= 376
    assert "and 40 more: see the table" in drawn
    assert set(re.findall(r'<circle class="(s\d)"', drawn)) == {"s3"}


def test_without_ceilings_there_is_no_roof() -> None:
    assert roof(samples.demo()) == ((), ())


@pytest.mark.parametrize("kernel", ["read", "write"])
def test_storage_is_read_and_written_in_requests_and_leaves_nothing_behind(
    kernel: str, tmp_path: Path
) -> None:
    activity = StorageActivity(kernel, 1 << 16, str(tmp_path))
    for _ in range(40):
        activity.step()
    activity.sync()
    assert activity.units == {"bytes": 65536.0}
    assert list(tmp_path.iterdir()) == []


def test_storage_needs_a_tier_that_may_be_written_to() -> None:
    with pytest.raises(Unsupported, match="which storage"):
        StorageActivity("read", 1 << 16, None)
    with pytest.raises(Unsupported, match="nobody may write there"):
        StorageActivity("read", 1 << 16, "/no/such/folder")


_BESIDE_PLAIN = """
import json, time, torch
from harness.worker.adapters.torch import ceiling, settings
from harness.worker.place import Place
from harness.worker.network.workload import Ceiling

place = Place(rank=0, size=1, local_rank=0, local_size=1, host="here", launcher="none")
chosen = settings.apply({"precision": "fp32", "device": "cpu", "threads": 1}, {}, place)
work = Ceiling("gemm", "", "gemm", "FLOP", 1024, 1024)
ours = ceiling.activity(work, chosen, 1)
a, b, c = torch.randn(1024, 1024), torch.randn(1024, 1024), torch.empty(1024, 1024)

def seconds(call):
    start = time.process_time()  # neighbours take turns, not CPU time
    call()
    return time.process_time() - start

def step():
    ours.step()
    ours.sync()

times = {"ours": [], "plain": []}
with torch.no_grad():
    for turn in range(40):
        times["ours"].append(seconds(step))
        times["plain"].append(seconds(lambda: torch.mm(a, b, out=c)))
rate = {name: 2 * 1024**3 / min(taken[5:]) for name, taken in times.items()}
print(json.dumps({"ratio": rate["ours"] / rate["plain"], "units": dict(ours.units)}))
"""


@pytest.mark.framework
def test_a_product_reaches_what_a_plain_torch_timing_beside_it_reaches() -> None:
    answer = subprocess.run(
        [str(framework("torch")), "-c", _BESIDE_PLAIN],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(answer.stdout)
    assert told["units"] == {"FLOP": 2.0 * 1024**3}
    assert 0.9 < told["ratio"] < 1.1, "within a tenth of plain torch, taking turns in one process"
