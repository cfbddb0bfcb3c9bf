"""A simulated study goes through plan, session, store and page, and never for a measured one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.errors import RunError
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.progress import SessionResult
from harness.run.session import resume, start
from harness.store.dataset import Dataset
from harness.store.layout import TrialPaths
from harness.store.outcome import Outcome, read_outcome
from harness.study.study import load_study
from reports.page.page import render
from reports.text.terminal import render as in_words
from tests import runs
from tests.bench.simulated_cost import studies
from tests.run.test_session import Listener

STUDY = """title = "Simulated"
[matrix]
workload = "resnet50"
framework = ["torch", "null"]
strategy = "ddp"
nodes = [1, 4]
[[exclude]]
nodes = 1
why = "one is enough"
[measure]
trials = 6
warmup = "3 steps"
until = "5 steps"
timeout = "20 min"
reference = {framework = "torch"}
"""


def simulated(folder: Path, text: str = STUDY, **settings: str) -> SessionResult:
    file = folder / "study.toml"
    file.write_text(text)
    found = load_platform("simulated-cluster")
    launcher = found.launcher.model_copy(
        update={"settings": {**found.launcher.settings, **settings}}
    )
    plan = make_plan(load_study(file), found.model_copy(update={"launcher": launcher}))
    return start(plan, root=folder / "run", study_text=text, observer=Listener())


def outcomes(folder: Path) -> list[Outcome]:
    return [read_outcome(TrialPaths(one)) for one in folder.glob("run/cells/*/trial-*")]


def test_a_simulated_study_is_whole_and_nothing_in_it_counts_as_measured(tmp_path):
    result = simulated(tmp_path)
    assert (result.done, result.ok) == (12, 12)
    assert {one.origin for one in outcomes(tmp_path)} == {"simulated"}
    assert {len(one.ranks) for one in outcomes(tmp_path)} == {4}
    assert not Dataset([tmp_path / "run"], origins=("measured",)).trials
    told = analyse(Dataset([tmp_path / "run"]))
    assert all(cell.rate is not None and cell.rate.n == 6 for cell in told.cells)


def test_its_page_bears_a_watermark_and_its_text_says_so_first(tmp_path):
    simulated(tmp_path)
    told = analyse(Dataset([tmp_path / "run"]))
    assert render(told).count("<span>simulated</span>") == 3
    assert in_words(told).startswith("Simulated: a model said all this.")
    measured = analyse(Dataset([runs.write_run(tmp_path / "m", [runs.RecordedCell()])]))
    assert "watermark" not in render(measured).rpartition("</style>")[2]


def test_it_is_never_shown_beside_what_was_measured(tmp_path):
    simulated(tmp_path)
    measured = runs.write_run(tmp_path / "m", [runs.RecordedCell()])
    with pytest.raises(RunError, match="run: simulated, and never shown beside what was measured"):
        Dataset([measured, tmp_path / "run"])


def test_a_dead_node_costs_one_trial_which_is_played_again_elsewhere(tmp_path):
    result = simulated(tmp_path, node_mtbf="3 min")
    lost = [one for one in outcomes(tmp_path) if one.ended == "node-lost"]
    assert lost
    for one in lost:
        died = one.reason.split()[3]
        again = [
            other
            for other in outcomes(tmp_path)
            if (other.cell_key, other.trial) == (one.cell_key, f"{one.trial}.2")
        ]
        assert all(died not in {rank.host for rank in other.ranks} for other in again)
    assert result.done == 12


def test_a_cut_link_is_a_timeout_that_says_who_waited_for_whom(tmp_path):
    simulated(tmp_path, link_mtbf="3 min")
    late = [one for one in outcomes(tmp_path) if one.ended == "timed-out"]
    assert late
    assert "waited for rank" in late[0].reason


def test_what_the_model_does_not_know_is_unsupported_with_the_reason(tmp_path):
    text = STUDY.replace('"resnet50"', '"resnet50"\ncheckpoint_every = 5')
    simulated(tmp_path, text.replace('["torch", "null"]', '"torch"'))
    (one, *_) = outcomes(tmp_path)
    assert (one.ended, one.reason) == ("unsupported", "the model writes no checkpoints.")


def test_resuming_plays_only_what_is_missing(tmp_path):
    simulated(tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run/cells/*/*/outcome.json")}
    gone = sorted(kept)[0]
    gone.unlink()
    assert resume(tmp_path / "run", observer=Listener()).ok == 12
    assert {path for path in kept if path.stat().st_mtime_ns != kept[path]} == {gone}


@pytest.mark.parametrize("name", sorted(studies()))
def test_large_studies_are_planned_and_played(tmp_path, name):
    text = studies(part=50)[name]
    simulated(tmp_path, text)
    assert {one.ended for one in outcomes(tmp_path)} <= {"ok", "node-lost"}
