from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.analysis.read import read_results
from harness.analysis.scaling.messages import interfaces
from harness.launch.batch_script import Batch
from harness.launch.launchers import slurm as queue
from tests.engines import planted_nodes
from tests.needs import framework
from tests.smoke_studies import included

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]
FOUR = ["trial-1", "trial-2", "trial-3", "trial-4"]


def test_mpirun_starts_ranks_on_three_hosts(site, open_mpi):
    site.platform("mpirun", environment=open_mpi(), hosts="h[1-3]", ssh=site.hosts.ssh)
    site.study("null", "ddp", nodes=3)
    site.hosts.run("h0", *site.command)
    site.ended_well({"h1", "h2", "h3"})


def test_agents_start_over_ssh_and_torch_trains_across_them(site):
    framework("torch")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.study("torch", "ddp", nodes=2)
    site.hosts.run("h0", *site.command)
    site.ended_well({"h1", "h2"})


@pytest.mark.parametrize("mpi", ["", "pmi2"])
def test_srun_reaches_two_nodes_of_an_allocation(site, slurm, mpi):
    site.platform("slurm", **({"mpi": mpi} if mpi else {}))
    site.study("null", "ddp", nodes=2)
    site.hosts.run("h0", "salloc", "-N2", "--exclusive", *site.command, env=slurm.env)
    site.ended_well({"h1", "h2"})


def test_a_batch_job_runs_a_study_on_its_nodes(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=2)
    log = site.folder / "the queue's log"
    command = ("env", "-C", str(site.folder), *site.command)
    batch = Batch(command, name="study", nodes=2, minutes=5, log=str(log))
    script = site.folder / "job.sh"
    script.write_text(queue.script(batch, {}))
    job = site.hosts.run("h0", *queue.submit(str(script), ()), env=slurm.env).stdout.strip()
    end = time.monotonic() + 120
    asked = [site.hosts.run("h0", *queue.state(job), env=slurm.env, check=False).stdout]
    while asked[-1].strip():
        assert time.monotonic() < end, asked[-1]
        time.sleep(1)
        asked.append(site.hosts.run("h0", *queue.state(job), env=slurm.env, check=False).stdout)
    assert "1 1 1" in log.read_text()
    site.ended_well({"h1", "h2"})


def message_s(site, size: int) -> float:
    shutil.rmtree(site.folder / "run", ignore_errors=True)
    site.hosts.run("h0", *site.command)
    site.ended_well({"h1", "h2"})
    (cell,) = read_results([site.folder / "run"]).cells
    assert interfaces(cell) == "eth0"
    (trial,) = [one for one in cell.trials if one.rate]
    return size / trial.rate


@pytest.mark.parametrize(
    ("name", "strategy"),
    [("torch", "ddp"), ("tensorflow", "multiworker"), ("jax", "data-parallel")],
)
def test_an_all_reduce_follows_the_cable_and_says_which_one_carried_it(site, name, strategy):
    framework(name)
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    size = 16_000_000
    more = f"message_bytes = {size}"
    site.study(name, strategy, nodes=2, workload=("all-reduce",), more=more)
    # of two ranks, each way of a cable carries as much as the message, in frames with headers
    wire_s = size * 8 / 200e6 * 1514 / 1448
    for host in ("h1", "h2"):
        site.hosts.shape(host, "200mbit")
    try:
        shaped = [message_s(site, size)]
        # whoever else uses this machine can make it slower, never faster than the cable
        while shaped[-1] > 1.15 * wire_s and len(shaped) < 3:
            shaped.append(message_s(site, size))
    finally:
        for host in ("h1", "h2"):
            site.hosts.unshape(host)
    assert shaped[-1] == pytest.approx(wire_s, rel=0.15), shaped
    unshaped_s = message_s(site, size)
    assert unshaped_s < 0.6 * shaped[-1], "the cable had been what it waited for"


def test_a_claim_of_infiniband_that_ran_over_sockets_is_misrouted(site):
    framework("torch")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    with (site.folder / "there.toml").open("a") as file:
        file.write('[network]\nfabric = "InfiniBand HDR"\n')
    more = "message_bytes = 4000000"
    site.study("torch", "ddp", nodes=2, workload=("all-reduce",), more=more)
    site.hosts.run("h0", *site.command)
    (cell,) = read_results([site.folder / "run"]).cells
    assert {trial.verdict for trial in cell.trials} == {"misrouted"}
    for rank, said in enumerate(cell.trials[0].evidence[:2]):
        assert said.startswith(f"rank {rank} on h{rank + 1} sent")
        assert said.endswith("MB through sockets of eth0, not the claimed InfiniBand HDR")


def wait_until_the_queue_is_empty(site, slurm) -> None:
    end = time.monotonic() + 700
    while site.hosts.run("h0", "squeue", "--noheader", env=slurm.env).stdout.strip():
        assert time.monotonic() < end
        time.sleep(0.5)


def test_a_study_handed_to_the_queue_runs_packed_in_one_job(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=[1, 2], trials=12, until="0.1 s")  # and one pilot each
    study = ("run", "study.toml", "--platform", "there.toml", "--name", "packed", "--detach")
    dear = slurm.bakeoff(*study, "--max-node-hours", "0.0001", check=False)
    assert dear.returncode == 2
    assert "nothing was submitted" in dear.stderr
    assert "The queue has 3 nodes" in dear.stderr
    assert "Job 1: 1 node, 1 cell, 13 trials" in dear.stderr
    assert "Job 2: 2 nodes, 1 cell, 13 trials" in dear.stderr
    assert not (site.folder / "runs" / "packed").exists()
    told = slurm.bakeoff(*study, "--max-jobs", "1", "--json")
    assert "Job 1: 2 nodes, 2 cells, 26 trials" in told.stderr
    (job,) = json.loads(told.stdout)["jobs"]
    assert (job["allocation"], job["nodes"]) == (1, 2)
    twice = slurm.bakeoff("resume", "runs/packed", "--detach", check=False)
    assert "is in the queue already" in twice.stderr or "nothing is left to run" in twice.stderr
    slurm.bakeoff("status", "runs/packed", "--wait")
    status = json.loads(slurm.bakeoff("status", "runs/packed", "--json").stdout)
    assert [one["job"] for one in status["jobs"]] == [job["job"]]
    assert (status["left"], status["queued"]) == (0, 0)
    outcomes = site.outcomes("runs/packed")
    assert [outcome["outcome"] for outcome in outcomes] == ["ok"] * 26
    assert sorted(len(outcome["ranks"]) for outcome in outcomes) == [1] * 13 + [2] * 13


def test_the_blocks_of_a_job_are_dealt_over_several_allocations(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=[2], trials=4, until="0.1 s")
    study = ("run", "study.toml", "--platform", "there.toml", "--name", "dealt", "--detach")
    told = slurm.bakeoff(*study, "--spread", "2").stderr
    assert "4 trials, 2 times at most" in told
    slurm.bakeoff("status", "runs/dealt", "--wait")
    assert sorted(o["trial"] for o in site.outcomes("runs/dealt")) == FOUR
    log = (site.folder / "runs" / "dealt" / "log.jsonl").read_text().splitlines()
    said = [json.loads(line) for line in log]
    ran = [one.get("trial", "|") for one in said if one["what"] in ("trial", "resumed")]
    assert [sorted(part) for part in (ran[1:3], ran[4:6])] == [
        ["trial-1", "trial-2"],
        ["trial-3", "trial-4"],
    ]


def test_a_cancelled_job_keeps_what_it_finished_and_another_goes_on(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=[2], trials=4, until="5 s")
    study = ("run", "study.toml", "--platform", "there.toml", "--name", "cut", "--detach")
    slurm.bakeoff(*study)
    end = time.monotonic() + 120
    while not site.outcomes("runs/cut"):
        assert time.monotonic() < end
        time.sleep(0.2)
    slurm.bakeoff("cancel", "runs/cut")
    slurm.bakeoff("status", "runs/cut", "--wait", check=False)
    kept = [o["trial"] for o in site.outcomes("runs/cut") if o["outcome"] == "ok"]
    assert 1 <= len(kept) < 4
    slurm.bakeoff("resume", "runs/cut", "--detach", "--max-jobs", "1")
    slurm.bakeoff("status", "runs/cut", "--wait")
    well = [o["trial"] for o in site.outcomes("runs/cut") if o["outcome"] == "ok"]
    # The trial that was cancelled counts by its second attempt, trial-N.2.
    blocks = sorted(trial.partition(".")[0] for trial in well)
    assert blocks == FOUR, "nothing was lost or done twice"


SIZES = (4, 1048576, 67108864, None)
ENOUGH = {
    "shams2017": included("shams2017", lambda cell: cell.get("batch") not in (4, 64)),
    "wang2018": included("wang2018", lambda cell: cell.get("message_bytes") in SIZES),
}
"""`make papers` measures the other batches and messages: each cell takes some ten seconds."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("study", ENOUGH)
def test_a_paper_is_repeated_at_smoke_size_on_two_nodes(site, slurm, study):
    framework("torch")
    site.platform("slurm", environment={"GLOO_SOCKET_IFNAME": "eth0"})
    narrowed = ("--only", "framework=torch", "--only", "strategy=ddp", "--size", "smoke")
    narrowed = (*narrowed, "--only", "input=synthetic")  # no data set is made here
    tolerated = ("--set", 'measure.tolerate=["contended", "throttled", "stalled"]')
    narrowed = (*narrowed, *ENOUGH[study])
    words = ("run", study, "--platform", "there.toml", "--name", study, "--detach")
    divided = ("--set", f"measure.explain={json.dumps(study == 'shams2017')}")  # once is enough
    slurm.bakeoff(*words, *narrowed, *tolerated, *divided)
    wait_until_the_queue_is_empty(site, slurm)
    # Cells that this machine cannot run (shams2017) make it end with 1, as a run does.
    status = slurm.bakeoff("status", f"runs/{study}", check=False)
    assert "planned trials done, 0 left." in status.stdout
    assert "Gate:" not in status.stdout + status.stderr
    page = (site.folder / "runs" / study / "report.html").read_text()
    answers = page.partition('<section id="findings">')[2].partition("</section>")[0]
    assert "not available" in answers
    assert "n = 1" in answers, "what was measured stands beside what the paper found"
    assert '<section id="scaling">' in page
    if study == "wang2018":
        assert "Exposed communication" in page
        assert "What exchanging messages costs" in page
        told = slurm.bakeoff("predict", f"runs/{study}", "--nodes", "16").stdout
        assert told.startswith("Predicted, not measured.")


class Running:
    """A study on the login host that has begun to measure."""

    def __init__(self, site) -> None:
        self.process = subprocess.Popen(
            site.hosts.command("h0", ["env", "-C", str(site.folder), *site.command])
        )
        end = time.monotonic() + 120
        while not any('"measure"' in text for text in self._said(site)):
            assert self.process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.2)

    def _said(self, site) -> list[str]:
        cells = site.folder / "run" / "cells"
        return [file.read_text() for file in cells.glob("*/trial-1/events.1.jsonl")]


@pytest.mark.parametrize("fate", ["power", "cable"])
def test_a_node_that_is_lost_costs_one_trial_which_runs_again_elsewhere(site, fate):
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.study("null", "ddp", nodes=2, until="8 s")
    running = Running(site)
    try:
        if fate == "power":
            site.hosts.power_off("h2")
        else:
            site.hosts.cut("h2")
        assert running.process.wait(240) == 0
    finally:
        if fate == "power":
            site.hosts.boot("h2")
        else:
            site.hosts.mend("h2")
    lost, again = site.outcomes()
    assert (lost["outcome"], lost["trial"]) == ("node-lost", "trial-1")
    assert "h2" in lost["reason"]
    assert (again["outcome"], again["trial"]) == ("ok", "trial-1.2")
    assert {rank["host"] for rank in again["ranks"]} == {"h1", "h3"}


def test_a_cable_that_is_out_for_three_seconds_costs_nothing_but_time(site):
    framework("torch")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.study("torch", "ddp", nodes=2, until="6 s")
    running = Running(site)
    site.hosts.cut("h2")
    time.sleep(3)
    site.hosts.mend("h2")
    assert running.process.wait(240) == 0
    site.ended_well({"h1", "h2"})


def test_a_link_that_stands_still_is_a_timeout_that_names_both_its_ends(site):
    framework("torch")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.study("torch", "ddp", nodes=2, until="30 s", timeout="40 s")
    running = Running(site)
    site.hosts.part("h1", "h2")
    try:
        assert running.process.wait(240) == 0
    finally:
        site.hosts.part("h1", "h2", parted=False)
    (late,) = site.outcomes()
    assert late["outcome"] == "timed-out", late["reason"]
    assert "The link between rank" in late["reason"]
    assert "stands still" in late["reason"]
    assert "rank 0 on h1" in late["reason"]
    assert "rank 1 on h2" in late["reason"]


PLANTED = """
title = "A profile full of faults"
nodes = 8
[launcher]
name = "slurm"
[launcher.settings]
partition = "short"
constraint = "knl"
gres = "gpu:1"
reservation = "mine"
options = "--nodelst=h9"
[storage.scratch]
path = "/no/such/scratch"
roles = ["data", "checkpoint"]
[frameworks.torch.container]
engine = "bwrap"
image = "/no/such/image"
[frameworks.jax]
modules = ["jax/9.9"]
[frameworks.tensorflow]
interpreter = "/no/such/python"
"""
WIDE = """
title = "More than the queue gives"
[matrix]
workload = ["tinycnn", "read-small-pictures"]
framework = ["torch", "jax", "tensorflow", "null"]
nodes = [1, 5]
container = {container}
[measure]
trials = 7
until = "30 s"
[[exclude]]
workload = "read-small-pictures"
framework = ["torch", "jax", "tensorflow"]
why = "one reader is enough"
"""


def test_everything_that_would_stop_a_study_is_said_before_it_waits_in_a_queue(site, slurm):
    slurm.wait_for("idle", len(site.hosts.nodes))  # one may still be at what went before
    (site.folder / "faulty.toml").write_text(PLANTED)
    (site.folder / "wide.toml").write_text(WIDE.format(container="[true, false]"))
    study = ("preflight", "wide.toml", "--platform", "faulty.toml", "--json")
    told = slurm.bakeoff(*study, check=False)
    assert told.returncode == 1, told.stderr
    found = json.loads(told.stdout)["findings"]
    said = {one["check"]: one["seen"] for one in found if one["level"] == "fault"}
    planted = {
        "container of torch": "/no/such/image",
        "environment jax": "jax/9.9",
        "environment tensorflow": "/no/such/python",
        "data set small-pictures-raw-9144": "no such folder",
        "constraint knl": "Invalid feature",
        "gres gpu:1": "Invalid generic resource",
        "reservation mine": "reservation is invalid",
        "options --nodelst=h9": "unrecognized option '--nodelst=h9'",
        "job 1": "the partition's limit is 5 min",
        "job 2": "node configuration is not available",
    }
    assert {check: words in said.get(check, "") for check, words in planted.items()} == (
        dict.fromkeys(planted, True)
    ), said
    assert "the partition has 3 nodes in service; " in said["job 2"]
    mended = {one["check"]: one["remedy"] for one in found if one["level"] == "fault"}
    assert mended["container of torch"] == "Mend frameworks.torch.container in faulty."
    assert "`sinfo -o '%P %f'`" in mended["constraint knl"]
    waiting = site.hosts.run("h0", "squeue", "--noheader", env=slurm.env).stdout
    assert (waiting, (site.folder / "runs").exists()) == ("", False)


@pytest.mark.parametrize(
    ("partition", "words"),
    [("shrot", "no partition 'shrot'. Did you mean 'short'?"), ("closed", "it is down")],
)
def test_a_partition_that_takes_no_job_is_named(site, slurm, partition, words):
    site.platform("slurm", partition=partition)
    site.study("null", "none", nodes=1)
    told = slurm.bakeoff("preflight", "study.toml", "--platform", "there.toml", check=False)
    assert told.returncode == 1
    assert words in told.stdout


def test_a_study_that_nothing_stops_is_said_to_be_ready(site, slurm):
    site.platform("slurm", partition="all")
    site.study("null", "ddp", nodes=[1, 2])
    study = ("study.toml", "--platform", "there.toml")
    ready = slurm.bakeoff("preflight", *study)
    assert "Nothing stops study on there." in ready.stdout
    scripts = slurm.bakeoff("plan", *study, "--script").stdout
    assert scripts.count("#SBATCH --partition=all\n") == 2
    assert [n for n in (1, 2, 3) if f"#SBATCH --nodes={n}\n" in scripts] == [1, 2]


def test_the_walk_from_a_login_node_to_a_page_goes_as_its_document_says(site, slurm):
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
    site.study("null", "ddp", nodes=[1, 2], until="0.1 s")
    (profile,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    typed = re.findall(r"^\$ bakeoff (.*)$", page, re.MULTILINE)
    assert len(typed) == 8
    said = []
    for line in typed:
        words = shlex.split(line.replace("quickstart", "study.toml"))
        said.append(slurm.bakeoff(*words))
        if words[:2] == ["platforms", "new"]:
            file = site.folder / "platforms" / "ours.toml"
            file.write_text(file.read_text() + profile.replace('"gpu"', '"all"'))
    assert "Nothing stops study on ours" in said[2].stdout
    assert "2 of 2 planned trials done, 0 left" in said[5].stdout
    assert (site.folder / "runs" / "first" / "report.html").exists()


@pytest.fixture
def held_back(site):
    """Let the node h2 use a sixteenth of a core."""
    with planted_nodes.held_back(site.hosts, "h2", 0.06):
        yield "h2"


def test_a_node_that_is_held_back_is_named_by_a_screen(site, held_back):
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    screen = (sys.executable, "-P", "-m", "harness.cli", "screen")
    words = ("--platform", "there.toml", "--framework", "null", "--until", "0.2 s", "--json")
    told = site.hosts.run("h0", *screen, *words, check=False)
    assert told.returncode == 1, told.stderr
    found = json.loads(told.stdout)
    assert (found["sick"], found["exclude"]) == ([held_back], held_back)
    again = site.hosts.run("h0", *screen, "--of", found["run"], "--json", check=False)
    assert json.loads(again.stdout) == found
