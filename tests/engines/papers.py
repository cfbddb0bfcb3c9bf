"""Run a paper's study at smoke size on pretended hosts under Slurm, as a user would.

    python -m tests.engines.papers wang2018 [--containers] [--to FOLDER] [words for `bakeoff run`]

There are two nodes. `h1` has all cores of this machine and `h2` the last one, so that a study can
go up on `h1` and out to `h2`, each rank on a core of its own. With --containers each cell runs
bare and in an image that every node mounts by itself (Charliecloud, SquashFS).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.environments.worker_python import resolve
from harness.platform.platform import load_platform
from tests.engines.hosts import Hosts, available
from tests.engines.image import packed
from tests.engines.slurm import Slurm

ENVIRONMENTS = {
    "shams2017": ("torch", "tensorflow"),
    "wang2018": ("torch", "tensorflow", "torch@horovod", "tensorflow@horovod"),
}
PLATFORM = """\
title = "Two pretended hosts under Slurm"
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
binds = ["{folder}:{folder}:rw"]
"""
# What runs on the other node is another program to the first, as both are one machine.
TOLERATE = 'measure.tolerate=["contended", "throttled", "stalled"]'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engines.papers")
    parser.add_argument("study", choices=ENVIRONMENTS)
    parser.add_argument("--containers", action="store_true")
    parser.add_argument("--to", type=Path, default=Path("runs"))
    asked, words = parser.parse_known_args()
    programs = ("slurmctld", "munged", *(("ch-run", "mksquashfs") if asked.containers else ()))
    where = f"{os.environ['PATH']}:/usr/sbin"
    lacking = [name for name in programs if not shutil.which(name, path=where)]
    if why := available() or (f"{', '.join(lacking)}: not installed" if lacking else None):
        print(f"Hosts cannot be pretended here: {why}.", file=sys.stderr)
        return 2
    folder = asked.to.resolve() / f"{asked.study}-on-pretended-hosts"
    environments = ENVIRONMENTS[asked.study]
    (folder / "platforms").mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-P", "-m", "harness.cli")
    subprocess.run([*command, "env", "create", *environments], check=True)
    text = PLATFORM
    if asked.containers:
        local = load_platform("local")
        pythons = {name: Path(resolve(name, local).argv[0]) for name in environments}
        image = packed(list(pythons.values()), folder)
        for name, python in pythons.items():
            text += CONTAINER.format(name=name, image=image, python=python, folder=folder)
        words += ["--set", "matrix.container=[false, true]"]
    (folder / "platforms" / "pretended-hosts.toml").write_text(text, "utf-8")
    run = (asked.study, "--size", "smoke", "--platform", "pretended-hosts", "--set", TOLERATE)
    began = time.monotonic()
    with TemporaryDirectory() as there, Hosts(Path(there), 2, wide=("h1",)) as hosts:
        slurm = Slurm(hosts)
        slurm.start()

        def bakeoff(*more: str) -> int:
            argv = hosts.command("h0", ["env", "-C", str(folder), *command, *more])
            return subprocess.run(argv, env={**os.environ, **slurm.env}, check=False).returncode

        name = f"{asked.study}-{time.strftime('%Y-%m-%d-%H%M')}"
        if code := bakeoff("run", *run, "--name", name, "--detach", *words):
            return code
        code = bakeoff("status", f"runs/{name}", "--wait")
        bakeoff("report", f"runs/{name}")
        print(f"{(time.monotonic() - began) / 60:.1f} min from booting the hosts to the page")
        return code


if __name__ == "__main__":
    sys.exit(main())
