from __future__ import annotations

import subprocess
import time

import pytest

from harness.launch.batch import Batch
from harness.launch.launchers import slurm as queue
from tests.needs import compiled, framework, program

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def ended_well(site, hosts: set[str]) -> None:
    outcomes = site.outcomes()
    assert outcomes
    for outcome in outcomes:
        assert outcome["outcome"] == "ok", outcome["reason"]
        assert {rank["host"] for rank in outcome["ranks"]} == hosts
        assert [rank["rank"] for rank in outcome["ranks"]] == list(range(len(hosts)))


def test_mpirun_starts_ranks_on_three_hosts(site, open_mpi):
    site.platform("mpirun", environment=open_mpi(), hosts="h[1-3]", ssh=site.hosts.ssh)
    site.study("null", "ddp", nodes=3)
    site.hosts.run("h0", *site.command)
    ended_well(site, {"h1", "h2", "h3"})


def test_agents_start_over_ssh_and_torch_trains_across_them(site):
    framework("torch")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.study("torch", "ddp", nodes=2)
    site.hosts.run("h0", *site.command)
    ended_well(site, {"h1", "h2"})


@pytest.mark.parametrize("mpi", ["", "pmi2"])
def test_srun_reaches_two_nodes_of_an_allocation(site, slurm, mpi):
    site.platform("slurm", **({"mpi": mpi} if mpi else {}))
    site.study("null", "ddp", nodes=2)
    site.hosts.run("h0", "salloc", "-N2", "--exclusive", *site.command, env=slurm.env)
    ended_well(site, {"h1", "h2"})


def test_a_batch_job_runs_a_study_on_its_nodes(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=2)
    log = site.folder / "the queue's log"
    command = ("env", "-C", str(site.folder), *site.command)
    batch = Batch(command, name="study", nodes=2, minutes=5, log=str(log))
    script = site.folder / "job.sh"
    script.write_text(queue.script(batch, {}))
    job = site.hosts.run("h0", *queue.submit(str(script)), env=slurm.env).stdout.strip()
    end = time.monotonic() + 120
    asked = [site.hosts.run("h0", *queue.state(job), env=slurm.env, check=False).stdout]
    while asked[-1].strip():
        assert time.monotonic() < end, asked[-1]
        time.sleep(1)
        asked.append(site.hosts.run("h0", *queue.state(job), env=slurm.env, check=False).stdout)
    assert "1 1 1" in log.read_text()
    ended_well(site, {"h1", "h2"})


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
    site.study("null", "ddp", nodes=2, until="20 s")
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
    site.study("torch", "ddp", nodes=2, until="10 s")
    running = Running(site)
    site.hosts.cut("h2")
    time.sleep(3)
    site.hosts.mend("h2")
    assert running.process.wait(240) == 0
    ended_well(site, {"h1", "h2"})


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_horovod_trains_over_gloo_and_over_mpi(site, open_mpi, name):
    program("mpirun", package="openmpi-bin")
    compiled(f"{name}@horovod")
    carried = []
    for launcher in ("ssh", "mpirun"):
        environment = open_mpi() if launcher == "mpirun" else {"HOROVOD_GLOO_IFACE": "eth0"}
        more = {"command" if launcher == "ssh" else "ssh": site.hosts.ssh}
        site.platform(launcher, environment=environment, hosts="h[1-2]", **more)
        site.study(name, "horovod", nodes=2)
        site.hosts.run("h0", *site.command)
        ended_well(site, {"h1", "h2"})
        events = next((site.folder / "run").glob("cells/*/trial-1/events.0.jsonl")).read_text()
        carried.append("horovod over mpi" if "horovod over mpi" in events else "horovod over gloo")
        subprocess.run(["rm", "-rf", str(site.folder / "run")], check=True)
    assert carried == ["horovod over gloo", "horovod over mpi"]
