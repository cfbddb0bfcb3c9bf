"""Plan cells that read beside cells that train: what says nothing, what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness import plugins
from harness.plan.duration import estimate
from harness.plan.plan import Plan
from harness.study.framework import framework_info

Planned = Callable[..., Plan]

STUDY = """title = "t"
[matrix]
workload = "tinycnn"
framework = "torch"
input = ["synthetic", "files"]
[[include]]
workload = "read-small-pictures"
framework = "torch"
[[include]]
workload = "read-small-pictures"
framework = "torch"
prefetch = 4
[[include]]
workload = "read-small-pictures"
framework = "torch"
compute = "burn"
compute_ms = 20
[[include]]
workload = "read-small-pictures"
framework = "torch"
prefetch = 4
compute = "burn"
compute_ms = 20
[measure]
"""
READS = """input = ["synthetic", "files"]
reader = ["threads"]
reader_threads = "any"
prefetch = "any"
[defaults]"""


@pytest.fixture(autouse=True)
def torch_reads(frameworks: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let torch read files, too."""
    files = dict(plugins.adapter_files())
    text = files["torch"].read_text("utf-8").replace('["train"]', '["train", "read"]')
    files["torch"] = files["torch"].parent / "reads" / "torch.toml"
    files["torch"].parent.mkdir(exist_ok=True)
    files["torch"].write_text(text.replace("[defaults]", READS), "utf-8")
    framework_info.cache_clear()
    monkeypatch.setattr(plugins, "adapter_files", lambda: files)
    yield
    framework_info.cache_clear()


def test_a_factor_that_says_nothing_of_a_cells_work_is_absent(planned: Planned) -> None:
    trains, fed, reads, *_ = planned(STUDY).cells
    assert (trains.factors["input"], trains.factors["cache"]) == ("synthetic", None)
    assert (fed.factors["input"], fed.factors["cache"]) == ("files", "as-found")
    silent = {name for name, value in reads.factors.items() if value is None}
    assert {"input", "precision", "compile", "layout", "deterministic", "communicate"} <= silent
    assert (reads.factors["shuffle"], reads.factors["device"]) == ("none", "cpu")
    assert "synthetic" in trains.label
    assert "synthetic" not in reads.label


def test_what_only_reads_and_what_computes_beside_it_have_a_reference_each(
    planned: Planned,
) -> None:
    plan = planned(STUDY + "reference = { workload = 'read-small-pictures', prefetch = 0 }")
    assert {name: plan.cell(key).factors["compute"] for name, key in plan.reference.items()} == {
        "read-small-pictures": "none",
        "read-small-pictures + 20 ms burn": "burn",
    }


def test_a_task_whose_reference_nobody_declared_gets_its_pilot(planned: Planned) -> None:
    plan = planned(
        STUDY + "reference = { workload = 'read-small-pictures', compute = 'burn', prefetch = 4 }"
    )
    assert list(plan.reference) == ["read-small-pictures + 20 ms burn"]
    piloted = {key for key, block in plan.order if block == 0}
    assert piloted == {one.key for one in plan.cells if one.factors["compute"] != "burn"}


def test_the_guess_of_a_cell_that_reads_is_of_whole_epochs(planned: Planned) -> None:
    plan = planned(STUDY + "warmup = '1 steps'\nuntil = '1 steps'\ntimeout = '1 h'")
    guess = estimate(plan).trial_s
    reads, burns = (
        next(
            one
            for one in plan.cells
            if one.workload != "tinycnn" and one.factors["compute"] == compute
        )
        for compute in ("none", "burn")
    )
    epoch_s, start_s = 9144 * 12_000 / 200e6, reads.start_up_s
    assert guess[reads.key] - start_s == pytest.approx(2 * epoch_s)
    assert guess[burns.key] - start_s == pytest.approx(2 * (epoch_s + 286 * 0.02))


def test_labels_say_what_a_value_is_of(planned: Planned) -> None:
    trains, fed, reads, _, burns, _ = planned(STUDY).cells
    assert trains.label == "tinycnn · torch · synthetic"
    assert reads.label == "read-small-pictures · torch · prefetch 0"
    assert burns.label == "read-small-pictures · torch · prefetch 0 · burn · compute ms 20"
    assert "files" in fed.label
