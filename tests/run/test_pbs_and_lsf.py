"""Studies left to PBS and LSF, against what those print; nobody has run them on a real one."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import Unavailable
from harness.launch.queue_answers import FreeNodes, JobState
from harness.platform.platform import Platform
from harness.platform.starting import Launcher
from harness.run.unattended import queue
from harness.run.unattended.queue import JobInQueue
from tests.cli.command import bakeoff
from tests.needs import framework

RECORDED = Path(__file__).parent / "recorded"
JOBS = [JobInQueue(n, str(1233 + n), 2, 95, ()) for n in range(1, 7)]


@dataclass
class Queue:
    """Programs in the place of an engine's: each notes its words and plays what was recorded."""

    engine: str
    folder: Path

    @property
    def platform(self) -> Platform:
        return Platform.model_construct(name="p", launcher=Launcher(name=self.engine))

    def program(self, name: str, *lines: str) -> None:
        path = self.folder / name
        said = f'echo "{name} $*" >> {self.folder}/asked'
        path.write_text("\n".join(("#!/bin/sh", said, *lines)) + "\n")
        path.chmod(0o755)

    def plays(self, name: str, recorded: str, *, code: int = 0, says: str = "") -> None:
        self.program(name, f"cat {RECORDED / recorded}", f"echo '{says}' >&2", f"exit {code}")

    @property
    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Queue:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Queue(request.param, folder)


pbs = pytest.mark.parametrize("engine", ["pbs"], indirect=True)
lsf = pytest.mark.parametrize("engine", ["lsf"], indirect=True)
both = pytest.mark.parametrize("engine", ["pbs", "lsf"], indirect=True)


@pbs
def test_pbs_tells_what_waits_and_runs_and_how_the_rest_ended(engine: Queue) -> None:
    unknown = "qstat: Unknown Job Id 1239.pbs01"
    engine.plays("qstat", "qstat.json", code=153, says=unknown)
    assert queue.states(engine.platform, JOBS) == {
        "1234": JobState(
            "RUNNING", "00:06:21", "Job run at Tue Nov 25 at 10:32 on (n1:ncpus=64)+(n2:ncpus=64)"
        ),
        "1235": JobState("HELD", "0:00", "Not Running: Job is in system hold."),
    }
    assert queue.ends(engine.platform, JOBS) == {
        "1236": JobState("KILLED", "01:35:08", "by signal 15"),
        "1237": JobState("COMPLETED", "00:20:02", ""),
        "1238": JobState("FAILED", "0:00", "exit status 1"),
    }
    ids = " ".join(one.job for one in JOBS)
    assert engine.asked == [f"qstat -f -F json {ids}", f"qstat -x -f -F json {ids}"]


@lsf
def test_lsf_tells_what_waits_and_runs_and_how_the_rest_ended(engine: Queue) -> None:
    engine.plays("bjobs", "bjobs.json", code=255, says="Job <1239> is not found")
    assert queue.states(engine.platform, JOBS) == {
        "1234": JobState("RUNNING", "1:02:05", ""),
        "1235": JobState("PENDING", "0:00:00", "Job dependency condition not satisfied;"),
    }
    assert queue.ends(engine.platform, JOBS) == {
        "1236": JobState(
            "FAILED", "1:35:02", "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
        ),
        "1237": JobState("COMPLETED", "0:01:02", ""),
        "1238": JobState("FAILED", "0:00:09", "exit code 1"),
    }


@both
def test_a_queue_that_knows_none_of_the_jobs_any_more_has_answered(engine: Queue) -> None:
    engine.program("qstat", "echo 'qstat: Unknown Job Id 1234.pbs01' >&2", "exit 153")
    engine.program("bjobs", "echo 'Job <1234> is not found' >&2", "exit 255")
    assert queue.states(engine.platform, JOBS[:1]) == {}


@both
def test_a_job_that_ended_before_it_was_cancelled_needs_it_no_more(engine: Queue) -> None:
    engine.program(
        "qdel",
        "echo 'qdel: Job has finished 1234.pbs01' >&2",
        "echo 'qdel: Request invalid for state of job 1235.pbs01' >&2",
        "exit 168",
    )
    engine.program("bkill", "echo 'Job <1234>: Job has already finished' >&2", "exit 255")
    queue.cancel(engine.platform, JOBS[:2])
    assert len(engine.asked) == 1
    refused = "Job <1235>: User permission denied"
    engine.program("qdel", f"echo 'Job has finished 1234\n{refused}' >&2", "exit 159")
    engine.program("bkill", f"echo 'Job has already finished\n{refused}' >&2", "exit 255")
    with pytest.raises(Unavailable, match="permission denied"):
        queue.cancel(engine.platform, JOBS[:2])


@both
@pytest.mark.parametrize("printed", ["[1, 2]", '{"Jobs": 3, "RECORDS": 3}', "{never closed"])
def test_an_answer_that_cannot_be_read_is_not_taken_for_an_empty_queue(
    engine: Queue, printed: str
) -> None:
    for program in ("qstat", "bjobs"):
        engine.program(program, f"echo '{printed}'")
    with pytest.raises(Unavailable, match=r"printed (what is no )?JSON"):
        queue.states(engine.platform, JOBS)


@both
def test_a_server_that_is_away_is_not_taken_for_an_empty_queue(engine: Queue) -> None:
    engine.program(
        "qstat", "echo 'qstat: cannot connect to server pbs01 (errno=15010)' >&2; exit 1"
    )
    engine.program("bjobs", "echo 'LSF is down. Please wait ...' >&2; exit 255")
    with pytest.raises(Unavailable, match=r"cannot connect to server|LSF is down"):
        queue.states(engine.platform, JOBS)


@both
def test_machines_out_of_service_are_not_counted(engine: Queue) -> None:
    engine.plays("pbsnodes", "pbsnodes.json")
    engine.plays("bhosts", "bhosts.txt")
    assert queue.free(engine.platform) == FreeNodes(idle=1, usable=3)


STUDY = """title = "Handed over"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 2
warmup = "1 steps"
until = "2 steps"
tolerate = ["contended", "throttled", "stalled"]
"""


@both
def test_nodes_are_counted_before_a_study_waits_for_them(engine: Queue, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "p.toml").write_text(f'title = "p"\nextends = "{engine.engine}-cluster"\n')
    words = ("preflight", "study.toml", "--platform", "p.toml")
    absent = bakeoff(*words, cwd=tmp_path)
    assert absent.returncode == 1
    assert "Run it on a login node of the cluster." in absent.stdout
    engine.plays("pbsnodes", "pbsnodes.json")
    engine.plays("bhosts", "bhosts.txt")
    told = bakeoff(*words, cwd=tmp_path)
    assert told.returncode == 0, told.stdout
    assert "3 nodes in service, 1 of them idle" in told.stdout


_ON_GPUS = {
    "pbs": ('chunk = "ncpus=64:ngpus={}"', "-l select=1:ncpus=64:ngpus=4"),
    "lsf": ('slots = "48"\ngpu = "num={}"', "-gpu num=4"),
}


@both
def test_a_queue_that_is_not_there_or_closed_is_told_before(engine: Queue, tmp_path: Path) -> None:
    engine.plays("pbsnodes", "pbsnodes.json")
    engine.plays("bhosts", "bhosts.txt")
    engine.plays("qstat", "queues.json")
    engine.plays("bqueues", "bqueues.txt")
    (tmp_path / "study.toml").write_text(STUDY)
    for queue_name, seen in (
        ("batch", None),
        ("bacth", "there is none. Did you mean 'batch'?"),
        ("shut", "it takes no jobs now, or starts none"),
        *([("brief", "and the queue gives 2 at most")] if engine.engine == "pbs" else []),
    ):
        settings = f'[launcher.settings]\nqueue = "{queue_name}"\n'
        (tmp_path / "p.toml").write_text(
            f'title = "p"\nextends = "{engine.engine}-cluster"\n{settings}'
        )
        words = ("preflight", "study.toml", "--platform", "p.toml", "--json")
        told = json.loads(bakeoff(*words, cwd=tmp_path).stdout)
        (found,) = (one for one in told["findings"] if one["check"] == f"queue {queue_name}")
        assert found["level"] == ("fine" if seen is None else "fault")
        assert (seen or "takes jobs") in found["seen"]
        assert told["ready"] is (seen is None)


@both
@pytest.mark.framework
def test_jobs_ask_for_gpus_of_each_node(engine: Queue, tmp_path: Path) -> None:
    framework("torch")
    setting, directive = _ON_GPUS[engine.engine]
    of_gpus = 'framework = "torch"\nstrategy = "ddp"\nranks_per_node = 4\ndevice = "gpu"'
    (tmp_path / "study.toml").write_text(
        STUDY.replace('framework = "null"', of_gpus).replace("nothing", "tinycnn")
    )
    engine.plays("pbsnodes", "pbsnodes.json")
    engine.plays("bhosts", "bhosts.txt")
    words = ("study.toml", "--platform", "p.toml")
    for count, level in ((4, "fine"), (2, "fault")):
        (tmp_path / "p.toml").write_text(
            f'title = "p"\nextends = "{engine.engine}-cluster"\n'
            f"[launcher.settings]\n{setting.format(count)}\n"
        )
        told = json.loads(bakeoff("preflight", *words, "--json", cwd=tmp_path).stdout)
        (gpus,) = (one for one in told["findings"] if one["check"] == "GPUs")
        assert gpus["level"] == level, gpus
        script = bakeoff("plan", *words, "--script", cwd=tmp_path).stdout
        assert (directive in script) is (count == 4), script


_SERVED = {
    "pbs": {
        "qsub": 'for file; do :; done; cat "$file" > script; echo 1234.pbs01',
        "qstat": "cat states; test -s states || { echo 'Unknown Job Id 1234' >&2; exit 153; }",
        "pbsnodes": f"cat {RECORDED / 'pbsnodes.json'}",
        "qdel": "rm states; touch states",
        "pbs_tmrsh": 'shift; exec "$@"',
    },
    "lsf": {
        "bsub": "cat > script; echo 'Job <1234> is submitted to queue <batch>.'",
        "bjobs": "cat states; test -s states || { echo 'Job <1234> is not found' >&2; exit 255; }",
        "bhosts": f"cat {RECORDED / 'bhosts.txt'}",
        "bkill": "rm states; touch states",
        "blaunch": 'shift 2; exec "$@"',
    },
}
_WAITS = {
    "pbs": {"Jobs": {"1234.pbs01": {"job_state": "Q", "comment": "Not Running: no node is free"}}},
    "lsf": {"RECORDS": [{"JOBID": "1234", "STAT": "PEND", "PEND_REASON": "no host is free"}]},
}
_GIVEN = {
    "pbs": {"PBS_NODEFILE": "nodefile", "PBS_JOBID": "1234.pbs01"},
    "lsf": {"LSB_HOSTS": "localhost localhost", "LSB_JOBID": "1234"},
}


@both
@pytest.mark.slow
def test_a_study_is_submitted_waits_runs_and_is_told_to_be_done(
    engine: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in _SERVED[engine.engine].items():
        engine.program(name, f"cd {tmp_path}" if "exec" not in line else ":", line)
    (tmp_path / "states").write_text(json.dumps(_WAITS[engine.engine]))
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "nodefile").write_text("localhost\nlocalhost\n")
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "p.toml").write_text(
        f'title = "p"\nextends = "{engine.engine}-cluster"\n'
    )
    words = ("study.toml", "--platform", "p", "--detach", "--name", "r")
    told = bakeoff("run", *words, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "Submitted: 1234." in told.stderr
    waiting = bakeoff("status", "r", cwd=tmp_path)
    assert "job 1234, 1 node: " in waiting.stdout
    assert "is free; 2 trials left" in waiting.stdout
    again = bakeoff("resume", "r", "--detach", cwd=tmp_path)
    assert "is in the queue already (job 1234)" in again.stderr
    cancelled = bakeoff("cancel", "r", cwd=tmp_path)
    assert "Cancelled: 1234." in cancelled.stderr

    assert bakeoff("resume", "r", "--detach", cwd=tmp_path).returncode == 0
    for name, value in _GIVEN[engine.engine].items():
        monkeypatch.setenv(name, value)
    ran = subprocess.run(
        ["sh", "script"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(bakeoff("status", "r", "--json", cwd=tmp_path).stdout)["left"] == 0


@both
def test_blocks_are_not_dealt_over_allocations_where_no_job_array_does(
    engine: Queue, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    words = ("study.toml", "--platform", f"{engine.engine}-cluster", "--detach", "--spread", "2")
    told = bakeoff("run", *words, cwd=tmp_path)
    assert told.returncode == 2
    assert f"has the queue of {engine.engine}" in told.stderr
    assert engine.asked == []
