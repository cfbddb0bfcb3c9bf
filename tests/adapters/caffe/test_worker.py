"""Drive a stand-in caffe through the worker and through a session."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.read import read_results
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.session import start
from harness.store.dataset import Dataset
from harness.study.study import load_study
from harness.worker import job as jobs
from harness.worker.adapters.caffe.program import CaffeFailed, time_net, train
from harness.worker.gate import tensors
from reports.text.answer import sentence
from tests.adapters.listener import Listener
from tests.planted_secrets import KINDS, planted
from tests.scales import parted
from workloads.tinycnn import WORKLOAD

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def program(folder: Path, dialect: str, gpus: int = 0) -> Path:
    """Make a caffe program of the stand-in."""
    path = folder / f"caffe-{dialect}"
    words = [sys.executable, str(HERE / "stand_in.py"), "--dialect", dialect, "--gpus", str(gpus)]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def work(folder: Path, dialect: str = "bvlc", gpus: int = 0, **fields: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {
        "purpose": "trial",
        "cell_key": "k",
        "trial": "t",
        "workload": "tinycnn",
        "workload_module": "workloads.tinycnn",
        "framework": "caffe",
        "adapter_module": "harness.worker.adapters.caffe.adapter",
        "environment": "caffe",
        "strategy": "none",
        "factors": {"batch": 8, "threads": 1},
        "options": {},
        "warmup": jobs.Span(steps=5),
        "until": jobs.Span(steps=200),
        "seed": 7,
        "directory": str(folder),
        **fields,
    }
    path = folder / "job.json"
    given["scale"], given["factors"] = parted(given["factors"])
    path.write_text(jobs.text(jobs.Job(**given)), encoding="utf-8")
    caffe = str(program(folder, dialect, gpus))
    named = {"CAFFE_BIN": caffe} if dialect == "bvlc" else {"INTEL_CAFFE_BIN": caffe}
    env = {**os.environ, **named, "BAKEOFF_CAFFE_FLAVOUR": dialect, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-m", "harness.worker", path], env=env, capture_output=True, check=False
    )
    lines = (folder / "events.0.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def told(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [event for event in events if event["event"] == kind]
    assert found, events
    return found


@pytest.mark.parametrize("dialect", ["bvlc", "intel"])
def test_a_training_is_recorded_from_the_program_s_own_timestamps(
    tmp_path: Path, dialect: str
) -> None:
    events = work(tmp_path, dialect)
    assert told(events, "finished")
    assert told(events, "identity")[0]["lowered"] == WORKLOAD.parameters
    windows = told(events, "window")
    assert {window["clock"] for window in windows} == {"external"}
    measured = [window for window in windows if window["phase"] == "measure"]
    assert sum(window["steps"] for window in measured) >= 200
    for before, after in itertools.pairwise(windows):
        assert before["first"] + before["steps"] == after["first"]
        assert before["end"] == after["start"] < after["end"]
    build, close = (next(e["t"] for e in events if e.get("name") == n) for n in ("build", "close"))
    assert build < windows[0]["start"] < windows[-1]["end"] < close
    facts = told(events, "facts")[0]["facts"]
    assert facts["clock"] == "external"
    assert facts["forward_s"] > 0
    assert facts["backward_s"] > 0
    assert "stopped early" in (tmp_path / "caffe" / "train.log").read_text(encoding="utf-8")


def test_a_stand_in_confesses_in_its_version(tmp_path: Path) -> None:
    assert told(work(tmp_path), "versions")[0]["versions"]["caffe"] == "1.0.0-stand-in"


def test_a_build_without_gpus_is_an_honest_hole(tmp_path: Path) -> None:
    (failed,) = told(work(tmp_path, factors={"batch": 8, "device": "gpu"}), "failed")
    assert failed["kind"] == "unsupported"
    assert failed["message"] == "Cannot use GPU in CPU-only Caffe: check mode."


def test_one_process_drives_several_gpus_each_with_a_batch_of_its_own(tmp_path: Path) -> None:
    asked = {"batch": 4, "device": "gpu", "devices_per_rank": 2}
    events = work(tmp_path, gpus=2, strategy="several-gpus", factors=asked)
    assert told(events, "finished")
    assert told(events, "units")[0]["units"] == {"images": 8}
    assert told(events, "facts")[0]["facts"]["replicas"] == 2
    logs = {name: (tmp_path / "caffe" / f"{name}.log").read_text() for name in ("time", "train")}
    assert "Using GPUs 0, 1\n" in logs["train"]
    assert "Using GPUs 0\n" in logs["time"], "one GPU is timed"
    assert "Top shape: 4 3 32 32 " in logs["train"]


def test_a_gpu_that_is_not_there_is_an_honest_hole(tmp_path: Path) -> None:
    asked = {"batch": 4, "device": "gpu", "devices_per_rank": 2}
    events = work(tmp_path, gpus=1, strategy="several-gpus", factors=asked)
    (failed,) = told(events, "failed")
    assert failed["kind"] == "unsupported"
    assert "invalid device ordinal" in failed["message"]


def test_engines_are_intel_s(tmp_path: Path) -> None:
    (failed,) = told(work(tmp_path, options={"engine": "MKL2017"}), "failed")
    assert failed["message"] == "only Intel's flavour has engines; use caffe@intel"
    assert told(work(tmp_path, "intel", options={"engine": "MKL2017"}), "finished")


def test_what_ran_names_the_engine_that_the_program_says(tmp_path: Path) -> None:
    assert told(work(tmp_path), "facts")[0]["facts"]["engine"] == "CAFFE"
    facts = told(work(tmp_path, "intel"), "facts")[0]["facts"]
    assert facts["engine"] == "MKLDNN", "the build's own"
    assert facts["input_s"] > 0
    asked = work(tmp_path, "intel", options={"engine": "MKL2017"})
    assert told(asked, "facts")[0]["facts"]["engine"] == "MKL2017"


def test_layers_are_timed_once_for_all_trials_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_CAFFE_TIMES", str(tmp_path / "times"))
    facts, one = [], program(tmp_path, "bvlc")
    monkeypatch.setattr("tests.adapters.caffe.test_worker.program", lambda *_: one)
    for name in ("trial-1", "trial-2"):
        (tmp_path / name).mkdir()
        facts.append(told(work(tmp_path / name), "facts")[0]["facts"])
    assert (tmp_path / "trial-1" / "caffe" / "time.log").exists()
    assert not (tmp_path / "trial-2" / "caffe" / "time.log").exists()
    assert facts[0]["forward_s"] == facts[1]["forward_s"] > 0


def test_another_program_of_that_name_is_timed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_CAFFE_TIMES", str(tmp_path / "times"))
    one = program(tmp_path, "bvlc")
    monkeypatch.setattr("tests.adapters.caffe.test_worker.program", lambda *_: one)
    for seconds in (1, 2):
        os.utime(one, (seconds, seconds))
        work(tmp_path)
    assert len(list((tmp_path / "times").glob("*.log"))) == 2


def test_a_probe_says_what_each_layer_takes(tmp_path: Path) -> None:
    facts = told(work(tmp_path, purpose="probe"), "facts")[0]["facts"]
    assert facts["layers"]["block/conv2"].keys() == {"forward", "backward"}


def test_the_gate_is_told_why_it_cannot_look(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    index = {
        "version": tensors.VERSION,
        "about": {"precision": "timed", "input": None},
        "tensors": {},
    }
    (given / "index.json").write_text(json.dumps(index), encoding="utf-8")
    paths = {"given": str(given), "made": str(tmp_path / "made")}
    (failed,) = told(work(tmp_path, purpose="examine", paths=paths), "failed")
    assert failed["kind"] == "unsupported"
    assert "has no pycaffe that can be imported (No module named 'caffe')" in failed["message"]


def test_a_program_that_cannot_read_its_net_is_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'Error parsing text-format' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(CaffeFailed, match=r"exit code 1: Error parsing text-format"):
        time_net([str(broken)], {}, str(tmp_path / "log"))


WRONG_NET = r"""#!/bin/sh
[ "$1" = --version ] && { echo caffe version 1.0.0; exit 0; }
cat >&2 <<'WORDS'
I20261121 11:41:10.684322 20718 caffe.cpp:197] Use CPU.
[libprotobuf ERROR google/protobuf/text_format.cc:274] Error parsing text-format \
caffe.NetParameter: \
44:17: Message type "caffe.ConvolutionParameter" has no field named "kernel_sizes".
F20261121 11:41:10.684623 20718 upgrade_proto.cpp:90] Check failed: ReadProtoFromTextFile \
Failed to parse NetParameter file: net.prototxt
*** Check failure stack trace: ***
    @     0x7fb275e421ed  google::LogMessage::Fail()
    @     0x7fb275e45d05  google::LogMessage::SendToLog()
    @     0x7fb275e41d0c  google::LogMessage::Flush()
    @     0x7fb275e432e9  google::LogMessageFatal::~LogMessageFatal()
    @     0x7fb275b06760  caffe::ReadNetParamsFromTextFileOrDie()
    @     0x7fb275b06761  caffe::Net<>::Net()
    @     0x55cc9280eefd  time()
    @     0x55cc9280b78d  main
    @     0x7fb27544524a  (unknown)
    @     0x7fb275445305  __libc_start_main
    @     0x55cc9280c241  _start
WORDS
kill -ABRT $$
""".replace("\\\n", "")
SET_UP = """#!/bin/sh
cat >&2 <<'WORDS'
I20261121 11:03:08.086733 21012 net.cpp:53] Initializing net from parameters:
layer {
  name: "loss"
  bottom: "fc"
  top: "loss"
}
WORDS
"""


def only(folder: Path, script: str) -> Path:
    """Make a caffe program of a shell script."""
    path = folder / "caffe"
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_what_is_wrong_in_a_net_stands_in_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFFE_BIN", str(only(tmp_path, WRONG_NET)))
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace('["caffe", "caffe@intel"]', '"caffe"'), encoding="utf-8")
    plan = make_plan(load_study(study), load_platform())
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    (path,) = tmp_path.glob("run/cells/*/trial-1/outcome.json")
    reason = json.loads(path.read_text())["reason"]
    assert "was ended by signal 6 (SIGABRT)" in reason
    assert '44:17: Message type "caffe.ConvolutionParameter" has no field named "kernel_s' in reason
    assert "Failed to parse NetParameter file: net.prototxt" in reason
    assert "__libc_start_main" not in reason


@pytest.mark.parametrize("kill", ["kill -9 $$", "exit 137"])
def test_a_killed_program_is_told_by_its_signal_alone(tmp_path: Path, kill: str) -> None:
    caffe = only(tmp_path, SET_UP + kill)
    with pytest.raises(CaffeFailed) as caught:
        time_net([str(caffe)], {}, str(tmp_path / "log"))
    said = "caffe time was ended by signal 9 (SIGKILL): by somebody else, or for memory"
    assert str(caught.value) == said


def test_a_program_that_ends_well_and_says_nothing_is_told_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(CaffeFailed) as caught:
        time_net(["/bin/true"], {}, str(tmp_path / "log"))
    assert str(caught.value) == (
        "caffe time ended with exit code 0 and never said 'Average Forward pass'; it printed "
        "nothing at all: is /bin/true Caffe?"
    )


def test_a_program_that_stops_half_way_is_told_by_what_it_never_said(tmp_path: Path) -> None:
    with pytest.raises(CaffeFailed) as caught:
        time_net([str(only(tmp_path, SET_UP))], {}, str(tmp_path / "log"))
    assert str(caught.value) == (
        "caffe time ended with exit code 0 and never said 'Average Forward pass'"
    )


def test_what_the_program_prints_is_kept_without_its_secrets(tmp_path: Path) -> None:
    lines = [one for one in KINDS if "\n" not in one.value]
    text = "".join(f"{one.name}={one.value}\n" for one in lines)
    (tmp_path / "words").write_text(f"{text}own word: {KINDS[28].secret}-and-more\nthe end\n")
    caffe = only(tmp_path, f"#!/bin/sh\ncat {tmp_path}/words >&2\n")
    for run in (time_net, lambda *given: list(train(*given))):
        with pytest.raises(CaffeFailed):
            run(
                [str(caffe)], {"DB_PASSWORD": f"{KINDS[28].secret}-and-more"}, str(tmp_path / "log")
            )
        kept = (tmp_path / "log").read_text()
        assert kept.endswith("the end\n")
        assert planted(kept) == []


STUDY = """title = "Caffe"
[matrix]
workload = "tinycnn"
framework = ["caffe", "caffe@intel"]
batch = 4
[measure]
trials = 1
warmup = "3 steps"
until = "50 ms"
"""


def test_a_session_keeps_stand_ins_apart_from_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFFE_BIN", str(program(tmp_path, "bvlc")))
    monkeypatch.setenv("INTEL_CAFFE_BIN", str(program(tmp_path, "intel")))
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    plan = make_plan(load_study(study), load_platform())
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    outcomes = [json.loads(p.read_text()) for p in tmp_path.glob("run/cells/*/*/outcome.json")]
    assert outcomes
    assert {(one["outcome"], one["origin"]) for one in outcomes} == {("ok", "stand-in")}
    assert not Dataset([tmp_path / "run"]).trials
    results = read_results([tmp_path / "run"])
    (ranking,) = results.rankings
    said = "Every trial is of the origin stand-in and left out, so there is no answer yet."
    assert sentence(ranking) == said
    flavours = [
        event["versions"]["flavour"]
        for path in tmp_path.glob("run/cells/*/trial-1/events.0.jsonl")
        for event in map(json.loads, path.read_text().splitlines())
        if event["event"] == "versions"
    ]
    assert sorted(flavours) == ["bvlc", "intel"]
