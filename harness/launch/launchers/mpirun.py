"""Launch a job with an MPI's own starter, for ranks that speak MPI, or Horovod's.

Settings: ``mpi`` (``openmpi``, ``mpich``, ``intel``, ``horovodrun``), ``hosts`` (absent: nodes of
the Slurm allocation, else this machine), ``command`` (``mpirun``, with its own options), ``ssh``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.agent.shim import DOOR
from harness.launch import placement
from harness.launch.contract import Launch, Worker
from harness.launch.host_lists import unfolded
from harness.launch.launchers import slurm, ssh
from harness.platform.platform import Platform
from harness.worker.job import Job

HERE = ("",)
SETTINGS = ("mpi", "hosts", "command", "ssh")
setting_fault = ssh.setting_fault


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes at hand."""
    if settings.get("hosts"):
        return unfolded(str(settings["hosts"]))
    return slurm.nodes(settings, environ) if environ.get("SLURM_JOB_NODELIST") else HERE


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node: what mpirun itself would take."""
    if node in HERE:
        return tuple(argv)
    if not settings.get("hosts"):
        return slurm.reach(node, argv, settings)
    return ssh.reach(node, argv, {"command": settings.get("ssh") or "ssh"})


def launch(job_path: str, job: Job, platform: Platform, worker: Worker) -> Launch:
    """Let the MPI's starter start every rank, through the agents."""
    settings = platform.launcher.settings
    dialect = str(settings.get("mpi") or "openmpi")
    each = job.scale.ranks_per_node
    hosts = [node.name for node in worker.nodes if node.name]
    command, words = _DIALECTS[dialect](hosts, len(worker.nodes), each)
    start = shlex.split(str(settings.get("command") or command))
    return placement.lay_out(job_path, job, platform, worker, starter=(*start, *words))


def _openmpi(hosts: Sequence[str], count: int, each: int) -> tuple[str, list[str]]:
    words = ["-np", str(count * each), "--bind-to", "none", "-x", DOOR]
    if hosts:
        words += ["--host", ",".join(f"{host}:{each}" for host in hosts)]
    else:
        words.append("--oversubscribe")
    return "mpirun", [*words, "--map-by", f"ppr:{each}:node"]


def _mpich(hosts: Sequence[str], count: int, each: int) -> tuple[str, list[str]]:
    words = ["-n", str(count * each), "-ppn", str(each), "-bind-to", "none"]
    words += ["-hosts", ",".join(hosts)] if hosts else []
    return "mpiexec.hydra", [*words, "-genvlist", DOOR]


def _intel(hosts: Sequence[str], count: int, each: int) -> tuple[str, list[str]]:
    words = ["-n", str(count * each), "-ppn", str(each), "-genv", "I_MPI_PIN", "0"]
    words += ["-hosts", ",".join(hosts)] if hosts else []
    return "mpiexec.hydra", [*words, "-genvlist", DOOR]


def _horovodrun(hosts: Sequence[str], count: int, each: int) -> tuple[str, list[str]]:
    """Let Horovod's own runner start ranks that meet over Gloo, where it keeps their board."""
    named = ",".join(f"{host}:{each}" for host in hosts or ["localhost"])
    return "horovodrun", ["-np", str(count * each), "-H", named, "--gloo"]


_DIALECTS: Mapping[str, Callable[[Sequence[str], int, int], tuple[str, list[str]]]] = {
    "openmpi": _openmpi,
    "mpich": _mpich,
    "intel": _intel,
    "horovodrun": _horovodrun,
}
MPI = tuple(_DIALECTS)
