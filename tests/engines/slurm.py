"""Start a Slurm on pretended hosts: a controller on ``h0``, a daemon on every other."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.engines.hosts import Hosts

_CONF = """\
ClusterName=bakeoff
SlurmctldHost=h0
AuthType=auth/munge
CredType=cred/munge
AuthInfo=cred_expire=5
AccountingStorageType=accounting_storage/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=2
TCPTimeout=2
MessageTimeout=10
BatchStartTimeout=10
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/linux
SlurmdParameters=config_overrides
NodeName={nodes} CPUs=1 Sockets=1 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=4000
PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
PartitionName=short Nodes={nodes} MaxTime=5 State=UP
PartitionName=closed Nodes={nodes} State=DOWN
"""
_PATIENCE_S = 60.0


class Slurm:
    """A running Slurm."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self._conf = hosts.folder / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        """What Slurm's commands need."""
        return {"SLURM_CONF": str(self._conf)}

    def start(self) -> None:
        """Start every daemon and wait until the nodes are idle."""
        folder = self.hosts.folder
        (folder / "state").mkdir()
        self._conf.write_text(_CONF.format(folder=folder, nodes=",".join(self.hosts.nodes)))
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.hosts.serve(self._start_daemons)
        self.wait_for("idle", len(self.hosts.nodes))

    def bakeoff(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Type a command on the login host."""
        argv = (sys.executable, "-P", "-m", "harness.cli", *words)
        return self.hosts.run("h0", *argv, env=self.env, check=check)

    def _start_daemons(self, host: str) -> None:
        own = ("--pid-file=/run/munge/munged.pid", "--log-file=/run/munge/munged.log")
        paths = ("--socket=/run/munge/munge.socket.2", "--seed-file=/run/munge/seed", *own)
        key = self.hosts.folder / "munge.key"
        self.hosts.run(host, "munged", f"--key-file={key}", *paths, "--force")
        daemon = ("slurmd",) if host in self.hosts.nodes else ("slurmctld", "-c")
        self.hosts.run(host, *daemon, env=self.env)

    def wait_for(self, state: str, count: int) -> None:
        """Wait until so many nodes are in a state."""
        end = time.monotonic() + _PATIENCE_S
        while True:
            listed = self.hosts.run(
                "h0", "sinfo", "-h", "-N", "-t", state, "-o", "%N", env=self.env, check=False
            ).stdout.split()
            if len(set(listed)) >= count:
                return
            assert time.monotonic() < end, f"only {listed} became {state}"
            time.sleep(0.1)
