"""Give engine tests their hosts, and run studies on them as a user would."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hosts import Hosts, available
from tests.engines.slurm import Slurm
from tests.needs import missing, program

RUN = """
import sys
from pathlib import Path
from harness.run import session
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study

class Quiet:
    def progressed(self, progress): pass
    def trial_ended(self, progress, ended): pass
    def noted(self, text): print(text)

plan = make_plan(load_study("study.toml"), load_platform("there.toml"))
result = session.start(plan, root=Path(sys.argv[1]), study_text="", observer=Quiet())
print(result.done, result.ok, result.total)
"""
STUDY = """
title = "On several hosts"
[matrix]
workload = {workload}
framework = "{framework}"
strategy = "{strategy}"
nodes = {nodes}
batch = 4
threads = 1
{more}
[measure]
trials = {trials}
warmup = "3 steps"
until = "{until}"
timeout = "{timeout}"
tolerate = ["contended", "throttled", "stalled"]
"""
PLATFORM = """
title = "Pretended hosts"
nodes = {nodes}
[launcher]
name = "{launcher}"
settings = {{ {settings} }}
[binding]
oversubscribe = true
[observer.rates]
all = 1
"""


@dataclass
class Site:
    """A folder that every host sees, with a platform and a study in it."""

    hosts: Hosts

    @property
    def folder(self) -> Path:
        """Where everything lies."""
        return self.hosts.folder

    def platform(
        self, launcher: str, *, environment: Mapping[str, str] | None = None, **settings: str
    ) -> None:
        """Write the platform."""
        told = ", ".join(f'{key} = "{value}"' for key, value in settings.items())
        text = PLATFORM.format(nodes=len(self.hosts.nodes), launcher=launcher, settings=told)
        variables = "".join(f'{key} = "{value}"\n' for key, value in (environment or {}).items())
        (self.folder / "there.toml").write_text(f"{text}[environment]\n{variables}")

    def study(
        self,
        framework: str,
        strategy: str,
        *,
        nodes: int | Sequence[int],
        trials: int = 1,
        until: str = "10 steps",
        timeout: str = "120 s",
        workload: Sequence[str] = ("tinycnn",),
        more: str = "",
    ) -> None:
        """Write the study."""
        filled = STUDY.format(
            framework=framework,
            strategy=strategy,
            nodes=nodes,
            trials=trials,
            until=until,
            timeout=timeout,
            workload=json.dumps(list(workload)),
            more=more,
        )
        (self.folder / "study.toml").write_text(filled)

    @property
    def command(self) -> tuple[str, ...]:
        """What runs the study."""
        return (sys.executable, "-P", "-c", RUN, str(self.folder / "run"))

    def outcomes(self, run: str = "run") -> list[dict[str, Any]]:
        """Read how every trial ended, in the order of running."""
        files = (self.folder / run / "cells").glob("*/trial-*/outcome.json")
        found = [json.loads(file.read_text()) for file in files]
        return sorted(found, key=lambda outcome: outcome["position"])

    def ended_well(self, hosts: set[str]) -> None:
        """Hold every trial to have run on these hosts, a rank on each, without a fault."""
        outcomes = self.outcomes()
        assert outcomes
        for outcome in outcomes:
            assert outcome["outcome"] == "ok", outcome["reason"]
            assert {rank["host"] for rank in outcome["ranks"]} == hosts
            assert [rank["rank"] for rank in outcome["ranks"]] == list(range(len(hosts)))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    why = available()
    if why is not None:
        missing("a way to pretend hosts", why)
    with Hosts(tmp_path_factory.mktemp("hosts"), 3) as made:
        yield made


@pytest.fixture
def site(hosts: Hosts) -> Iterator[Site]:
    yield Site(hosts)
    for folder in ("run", "runs"):
        shutil.rmtree(hosts.folder / folder, ignore_errors=True)


@pytest.fixture(scope="module")
def slurm(hosts: Hosts) -> Slurm:
    for name, package in (("slurmctld", "slurm-wlm"), ("munged", "munge")):
        program(name, f"/usr/sbin/{name}", package=package)
    made = Slurm(hosts)
    made.start()
    return made


@pytest.fixture
def open_mpi(hosts: Hosts) -> Callable[[], dict[str, str]]:
    program("mpirun", package="openmpi-bin")
    return lambda: mpi_variables(hosts)


def mpi_variables(hosts: Hosts) -> dict[str, str]:
    """Give what Open MPI has to be told of pretended hosts."""
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm_rsh_agent": hosts.ssh,
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "OMPI_MCA_oob_tcp_if_include": "eth0",
    }
