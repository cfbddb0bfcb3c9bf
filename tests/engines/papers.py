"""Run a paper's study at smoke size on pretended hosts under Slurm, as a user would.

    python -m tests.engines.papers wang2018 [--containers] [--to FOLDER] [words for `bakeoff run`]

There are two nodes. `h1` has all cores of this machine and `h2` the last one, so that a study can
go up on `h1` and out to `h2`, each rank on a core of its own. With --containers each cell runs
bare and in an image that every node mounts by itself (Charliecloud, SquashFS). --environments says
which are built, where `--only` leaves cells out that would need others.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import units
from harness.analysis import numbers
from harness.environments import cache
from harness.environments.worker_python import resolve
from harness.machine.machine import Machine, read_machine
from harness.platform.platform import load_platform
from tests.engines.hosts import Hosts, available
from tests.engines.image import packed
from tests.engines.slurm import Slurm

ENVIRONMENTS = {
    "bae2019": ("null[lmdb]", "torch"),
    "lee2021": ("torch",),
    "shams2017": ("torch", "tensorflow"),
    "wang2018": ("torch", "tensorflow", "torch@horovod", "tensorflow@horovod"),
}
PLATFORM = """\
title = "{title}"
nodes = 2
[launcher]
name = "slurm"
[binding]
oversubscribe = true
[observer.rates]
all = 1
[environment]
GLOO_SOCKET_IFNAME = "eth0"
HOROVOD_GLOO_IFACE = "eth0"
"""
CONTAINER = """\
[frameworks."{name}".container]
engine = "charliecloud"
image = "{image}"
interpreter = "{python}"
binds = ["{folder}:{folder}:rw", "{starts}"]
"""
# What runs on the other node is another program to the first, as both are one machine.
TOLERATE = 'measure.tolerate=["contended", "throttled", "stalled"]'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engines.papers")
    parser.add_argument("study", choices=ENVIRONMENTS)
    parser.add_argument("--containers", action="store_true")
    parser.add_argument("--to", type=Path, default=Path("runs"))
    parser.add_argument("--environments", nargs="+", metavar="NAME")
    asked, words = parser.parse_known_args()
    programs = ("slurmctld", "munged", *(("ch-run", "mksquashfs") if asked.containers else ()))
    path = f"{os.environ['PATH']}:/usr/sbin"
    lacking = [name for name in programs if not shutil.which(name, path=path)]
    if why := available() or (f"{', '.join(lacking)}: not installed" if lacking else None):
        print(f"Hosts cannot be pretended here: {why}.", file=sys.stderr)
        return 2
    folder = asked.to.resolve() / f"{asked.study}-on-pretended-hosts"
    if asked.containers and folder.is_relative_to("/tmp"):
        parser.error(f"--to {asked.to}: Charliecloud mounts /tmp itself; name a folder elsewhere.")
    environments = asked.environments or ENVIRONMENTS[asked.study]
    (folder / "platforms").mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-P", "-m", "harness.cli")
    subprocess.run([*command, "env", "create", *environments], check=True)
    text = PLATFORM.format(title=_title(read_machine()))
    if asked.containers:
        local = load_platform("local")
        pythons = {name: Path(resolve(name, local).argv[0]) for name in environments}
        starts = cache.home() / "gate"  # what trials start from is mounted from there
        starts.mkdir(parents=True, exist_ok=True)
        image = packed(list(pythons.values()), (folder, starts))
        for name, python in pythons.items():
            flavour = name.partition("[")[0]
            where = {"image": image, "python": python, "folder": folder, "starts": starts}
            text += CONTAINER.format(name=flavour, **where)
        words += ["--set", "matrix.container=[false, true]"]
    (folder / "platforms" / "pretended-hosts.toml").write_text(text, "utf-8")
    run = (asked.study, "--size", "smoke", "--platform", "pretended-hosts", "--set", TOLERATE)
    began = time.monotonic()
    with TemporaryDirectory() as there, Hosts(Path(there), 2, wide=("h1",)) as hosts:
        slurm = Slurm(hosts)
        slurm.start()

        def bakeoff(*more: str) -> subprocess.CompletedProcess[str]:
            argv = hosts.command("h0", ["env", "-C", str(folder), *command, *more])
            env = {**os.environ, **slurm.env}
            return subprocess.run(argv, env=env, stderr=subprocess.PIPE, text=True, check=False)

        name = f"{asked.study}-{time.strftime('%Y-%m-%d-%H%M')}"
        submit = ("run", *run, "--name", name, "--detach", *words)
        done = bakeoff(*submit)
        for made in re.findall(r"To make it: bakeoff (.+)", done.stderr):
            bakeoff(*made.split())
            done = bakeoff(*submit)
        sys.stderr.write(done.stderr)
        if done.returncode:
            return done.returncode
        code = bakeoff("status", f"runs/{name}", "--wait").returncode
        bakeoff("report", f"runs/{name}")
        print(f"{(time.monotonic() - began) / 60:.1f} min from booting the hosts to the page")
        return code


def _title(machine: Machine) -> str:
    """Say what the nodes are: nothing else that a run records tells that they are no machines."""
    cores = units.counted(machine.cores or 1, "core")
    memory = numbers.size(machine.memory_bytes or 0)
    made_of = f"{machine.cpu_model or machine.architecture}, {cores}, {memory} of memory"
    return (
        f"A pretended cluster under Slurm, namespaces of one machine ({made_of}; one core in both)"
    )


if __name__ == "__main__":
    sys.exit(main())
