"""Run workers as the host does: processes of their own, from a copied payload."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.gate.tensors import folders
from harness.worker.job import Job, Span, text
from harness.worker.scale import Scale
from tests import needs

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ["alexnet", "alexnet_caffe", "alexnet_chien", "cosmoflow", "neuron_inverter", "resnet50"]


@dataclass(frozen=True)
class Ended:
    """What a worker left behind."""

    code: int
    stderr: str
    events: list[dict[str, Any]]

    def first(self, kind: str) -> dict[str, Any]:
        return next(event for event in self.events if event["event"] == kind)

    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("payload")
    skipped = shutil.ignore_patterns("__pycache__")
    (folder / "harness").mkdir()
    shutil.copy(ROOT / "harness" / "__init__.py", folder / "harness")
    shutil.copytree(ROOT / "harness" / "worker", folder / "harness" / "worker", ignore=skipped)
    shutil.copytree(ROOT / "workloads", folder / "workloads", ignore=skipped)
    shutil.copy(ROOT / "tests" / "worker" / "unruly.py", folder)
    return folder


def job(directory: Path, **changes: Any) -> Job:
    plain = Job(
        purpose="trial",
        cell_key="9f3a",
        trial="trial-1",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework="null",
        adapter_module="harness.worker.adapters.null",
        environment="null",
        strategy="none",
        scale=Scale(batch_per_device=16),
        factors={},
        options={},
        warmup=Span(steps=10),
        until=Span(steps=200),
        seed=3,
        directory=str(directory),
    )
    return replace(plain, **changes)


def work(job: Job, payload: Path, python: str = sys.executable, **environment: str) -> Ended:
    directory = Path(job.directory)
    (directory / "job.json").write_text(text(job), encoding="utf-8")
    done = subprocess.run(
        [python, "-W", "error", "-m", "harness.worker", "job.json"],
        cwd=directory,
        env={"PYTHONPATH": str(payload), "PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    written = directory / f"events.{environment.get('BAKEOFF_RANK', '0')}.jsonl"
    lines = written.read_text(encoding="utf-8").splitlines()
    return Ended(done.returncode, done.stderr, [json.loads(line) for line in lines])


def unruly(directory: Path, payload: Path, **options: Any) -> Ended:
    return work(job(directory, adapter_module="unruly", options=options), payload)


def test_a_trial_tells_its_whole_story(tmp_path: Path, payload: Path) -> None:
    ended = work(job(tmp_path), payload)
    assert (ended.code, ended.stderr) == (0, "")
    once = [kind for kind in ended.kinds() if kind not in ("phase", "window")]
    assert once == ["anchor", "versions", "identity", "units", "facts", "finished"]
    phases = [event["name"] for event in ended.events if event["event"] == "phase"]
    assert phases == ["open", "build", "warm-up", "measure", "close"]
    assert ended.first("units")["units"] == {"images": 16.0}


def test_a_step_is_counted_when_the_measured_phase_is_over(tmp_path: Path, payload: Path) -> None:
    batch = {"first/input": np.zeros((16, 3)), "first/target": np.zeros(16)}
    folders.write(tmp_path / "proof", batch, {})
    asked = job(tmp_path, adapter_module="unruly", options={"is_examined": True})
    ended = work(replace(asked, paths={"proof": str(tmp_path / "proof")}), payload)
    (began,) = (event["t"] for event in ended.events if event.get("name") == "examine")
    assert ended.first("facts")["facts"]["multiplications"]["counted"] > began


def test_a_rank_of_an_agent_speaks_where_it_stands_for_its_path_may_be_anothers(
    tmp_path: Path, payload: Path
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    (here / "job.json").write_text(text(job(elsewhere)), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "harness.worker", "job.json"],
        cwd=here,
        env={"PYTHONPATH": str(payload), "PATH": os.defpath, "BAKEOFF_TOKEN": "run/cell/trial-1"},
        timeout=120,
        check=True,
    )
    assert (here / "events.0.jsonl").exists()
    assert list(elsewhere.iterdir()) == []


def test_a_trial_measures_what_it_was_asked_to(tmp_path: Path, payload: Path) -> None:
    ended = work(job(tmp_path), payload)
    windows = [event for event in ended.events if event["event"] == "window"]
    for phase, steps in (("warm-up", 10), ("measure", 200)):
        assert sum(w["steps"] for w in windows if w["phase"] == phase) == steps
    assert all(window["start"] <= window["end"] for window in windows)
    anchor = ended.first("anchor")["mono_ns"]
    assert all(anchor < window["start"] < ended.first("finished")["t"] for window in windows)


def test_peak_memory_is_this_process_and_not_its_parent(tmp_path: Path, payload: Path) -> None:
    ballast = bytearray(200 * 2**20)
    ended = work(job(tmp_path), payload)
    assert len(ballast) > ended.first("facts")["facts"]["peak_rss_bytes"] > 2**20


def test_no_work_at_all_can_be_timed(tmp_path: Path, payload: Path) -> None:
    floor = job(tmp_path, workload="nothing", workload_module="workloads.nothing")
    ended = work(floor, payload)
    assert ended.first("units")["units"] == {"steps": 1.0}
    assert "identity" not in ended.kinds()


def test_a_rank_writes_a_file_of_its_own(tmp_path: Path, payload: Path) -> None:
    place = {"BAKEOFF_RANK": "1", "BAKEOFF_SIZE": "2", "BAKEOFF_LOCAL_RANK": "1"}
    ended = work(job(tmp_path, scale=Scale(ranks_per_node=2)), payload, **place)
    anchor = ended.first("anchor")
    assert (ended.code, anchor["rank"], anchor["local_rank"], anchor["size"]) == (0, 1, 1, 2)


@pytest.mark.parametrize("where", ["in_build", "in_step"])
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("unsupported", "unsupported", "there is no LRN here"),
        ("out-of-memory", "out-of-memory", "tried to allocate 20 GiB"),
        ("memory-error", "out-of-memory", "MemoryError"),
        ("raise", "error", "RuntimeError: the kernel is not launched"),
        ("exit", "error", "SystemExit: 0"),
    ],
)
def test_a_fault_is_told_with_its_kind_and_trace(
    tmp_path: Path, payload: Path, where: str, how: str, kind: str, message: str
) -> None:
    ended = unruly(tmp_path, payload, **{where: how})
    failed = ended.first("failed")
    assert (ended.code, failed["kind"], failed["message"]) == (3, kind, message)
    assert "misbehave" in failed["trace"]
    assert "misbehave" in ended.stderr
    assert "finished" not in ended.kinds()


def test_windows_before_a_fault_are_kept(tmp_path: Path, payload: Path) -> None:
    ended = unruly(tmp_path, payload, in_step="raise")
    assert ended.kinds().count("window") == 3


def test_another_network_than_the_published_one_is_not_timed(tmp_path: Path, payload: Path) -> None:
    ended = unruly(tmp_path, payload, parameters=10_155)
    assert ended.code == 3
    failed = ended.first("failed")
    assert failed["kind"] == "refused"
    assert failed["message"] == "tinycnn: 10155 parameters in null, not 10154"
    assert ended.first("identity")["lowered"] == 10_155
    assert "window" not in ended.kinds()


def test_another_amount_of_work_than_a_step_is_given_is_not_timed(
    tmp_path: Path, payload: Path
) -> None:
    ended = unruly(tmp_path, payload, times=2)
    failed = ended.first("failed")
    assert failed["kind"] == "refused"
    assert failed["message"] == "tinycnn: 32 images in a step of a rank in null, not 16"
    assert "window" not in ended.kinds()


def test_a_network_that_was_changed_is_not_timed(tmp_path: Path, payload: Path) -> None:
    (tmp_path / "changed.py").write_text(
        "from dataclasses import replace\n"
        "from workloads import tinycnn\n"
        "WORKLOAD = replace(tinycnn.WORKLOAD, macs=1)\n",
        encoding="utf-8",
    )
    ended = work(job(tmp_path, workload_module="changed"), payload)
    assert "1917248 multiplications as described, not 1" in ended.first("failed")["message"]


def test_what_the_adapter_used_is_told_beside_what_the_process_used(
    tmp_path: Path, payload: Path
) -> None:
    facts = unruly(tmp_path, payload, parameters=10_154).first("facts")["facts"]
    assert facts["peak_device_bytes"] == 12
    about_the_process = {"peak_rss_bytes", "cpu_s", "variables"}
    assert set(facts) == {"peak_device_bytes", "told", "multiplications", *about_the_process}


def test_an_adapter_is_not_told_what_a_job_is_for_nor_whether_its_trial_is_examined(
    tmp_path: Path, payload: Path
) -> None:
    paths = {"proof": str(tmp_path), "proved": str(tmp_path / "proved"), "tier": "/fast"}
    asked = job(tmp_path, adapter_module="unruly", options={"parameters": 10_154}, paths=paths)
    assert work(asked, payload).first("facts")["facts"]["told"] == ["", "tier"]


def test_a_loss_that_is_not_a_number_is_told_as_such(tmp_path: Path, payload: Path) -> None:
    loss = unruly(tmp_path, payload).first("values")["values"]["loss"]
    assert loss != loss


def test_a_probe_is_asked_outside_any_trial(tmp_path: Path, payload: Path) -> None:
    ended = work(job(tmp_path, purpose="probe", adapter_module="unruly"), payload)
    assert ended.code == 0
    assert ended.first("facts")["facts"]["probed"] == "tinycnn"
    assert "window" not in ended.kinds()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"purpose": "probe"}, "the null adapter cannot be probed"),
        ({"purpose": "dance"}, "a worker has no door called 'dance'"),
        (
            {"workload_module": "workloads.all_reduce"},
            "the null adapter exchanges no messages",
        ),
        (
            {"workload_module": "workloads.checkpoint_tinycnn"},
            "the null adapter saves no checkpoints",
        ),
    ],
)
def test_a_door_that_is_not_there_is_unsupported(
    tmp_path: Path, payload: Path, asked: dict[str, str], message: str
) -> None:
    failed = work(job(tmp_path, **asked), payload).first("failed")
    assert (failed["kind"], failed["message"]) == ("unsupported", message)


@pytest.mark.parametrize("module", [*TRAINING, "cosmoflow_lee", "resnet50_v1", "tinycnn"])
def test_a_trial_runs_under_python_3_7(tmp_path: Path, payload: Path, module: str) -> None:
    old = job(tmp_path, workload_module="workloads." + module, until=Span(seconds=0.05))
    ended = work(old, payload, python=needs.python37())
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.first("versions")["versions"]["python"].startswith("3.7.")
    assert ended.kinds()[-1] == "finished"


def test_every_worker_module_compiles_under_python_3_7(payload: Path) -> None:
    done = subprocess.run(
        [needs.python37(), "-W", "error", "-m", "compileall", "-q", "-f", str(payload)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
