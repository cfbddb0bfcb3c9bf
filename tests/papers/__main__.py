"""Run the papers' studies on this machine, as a user would.

    python -m tests.papers [STUDY …] [--size smoke] [--to FOLDER] [--own PLATFORM] [words for `run`]

Storage tiers are loop devices held back to a quarter of what the paper's devices read, and to
requests a second that are ours (tests/storage/throttles.toml), and a folder in memory; containers
are bubblewrap's, of this machine's own files; two processes that speak MPI are started by an
mpirun. Where a size has cells of Caffe and SINGA, which smoke has not, they take part if PLATFORM
names builds of them (as `own-builds`). What needs two nodes runs on pretended hosts:
``python -m tests.engines.papers``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from harness.environments.worker_python import resolve
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study, study_files
from tests.storage.slow_tier import limits, missing, slow_tier

STUDIES = ("shams2017", "wang2018", "chien2018", "chien2018-checkpoints", "bae2019", "lee2021")
READS_LMDB, READS_PICTURES = "null[lmdb]", "torch[pillow]"
ENVIRONMENTS = ("torch", READS_PICTURES, "tensorflow", "mpi", READS_LMDB)
OWN_BUILDS = frozenset({"caffe", "caffe@intel", "singa"})
BY_MPI = "mpi"
HELD_BACK = {
    "hdd": ("hdd", 'roles = ["data", "checkpoint"]'),
    "ssd": ("ssd", 'roles = ["data", "checkpoint"]'),
    "optane": ("optane", 'roles = ["data", "checkpoint", "fast"]'),
    "lustre": ("lustre", 'roles = ["data"]'),
    "burst-buffer": ("optane", 'roles = ["data"]'),
}
"""The tiers of the studies, and as what each is held back."""
SIZE = "4G"
"""Of each: AlexNet's checkpoints take 700 MB, two are kept, and a third is written beside them."""
HEAD = """\
title = "This machine, with tiers that are held back"
extends = "{2}"
[storage.disk]
path = "{0}/disk"
kind = "this machine's disk"
roles = ["data", "checkpoint"]
[storage.memory]
path = "{1}"
kind = "a folder in memory"
roles = ["data"]
"""
TIER = """\
[storage.{0}]
path = "{1}"
kind = "a loop device held back to {2}"
{3}
"""
BOX = """\
[frameworks."{0}".container]
engine = "bwrap"
image = "/"
interpreter = "{1}"
"""
MPI = """\
title = "This machine, its ranks started by an mpirun"
extends = "local"
[launcher]
name = "mpirun"
settings = {{ command = "{0}" }}
"""
TOLERATE = 'measure.tolerate=["contended", "throttled", "stalled"]'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.papers")
    parser.add_argument("studies", nargs="*", metavar="STUDY", default=list(STUDIES))
    parser.add_argument("--to", type=Path, default=Path("runs/papers"))
    parser.add_argument("--size", default="smoke")
    parser.add_argument("--own", metavar="PLATFORM", default="local")
    asked, words = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # tiers are taken away even then
    folder = asked.to.resolve()
    (folder / "platforms").mkdir(parents=True, exist_ok=True)
    (folder / "disk").mkdir(exist_ok=True)
    if why := missing():
        print(f"No tiers that are held back: {why}. Their cells are left out.", file=sys.stderr)
    failed = bakeoff(folder, "env", "create", *ENVIRONMENTS)
    with ExitStack() as stack:
        memory = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
        if asked.own.endswith(".toml"):
            shutil.copy(asked.own, folder / "platforms")
        own = load_platform(asked.own)
        text = HEAD.format(folder, memory, own.name)
        there = OWN_BUILDS & own.frameworks.keys()
        for tier, (kind, roles) in HELD_BACK.items() if not why else ():
            made = stack.enter_context(slow_tier(kind, size=SIZE, beneath=folder))
            text += TIER.format(tier, made.folder, limits(kind), roles)
            made.enter()
        for name in (READS_LMDB, READS_PICTURES, *sorted(there)):
            text += BOX.format(name.partition("[")[0], resolve(name, own).argv[0])
        (folder / "platforms" / "held-back.toml").write_text(text, "utf-8")
        command = "mpirun --allow-run-as-root" if os.geteuid() == 0 else "mpirun"
        (folder / "platforms" / "mpi-here.toml").write_text(MPI.format(command), "utf-8")
        for study in asked.studies:
            sized = ("--size", asked.size, *words)
            only = _but(OWN_BUILDS - there | {BY_MPI}, study, asked.size)
            failed |= _run(folder, study, ("--platform", "held-back", *only), sized)
            if study == "shams2017":
                only = ("--only", f"framework={BY_MPI}")
                failed |= _run(folder, study, ("--platform", "mpi-here", *only), sized)
    return failed


def _but(others: Set[str], study: str, size: str) -> tuple[str, ...]:
    """Leave some frameworks out of a study that has them: its run is a narrowed one then."""
    plan = make_plan(load_study(study_files()[study], size=size), load_platform("local"))
    names = {cell.framework for cell in plan.cells}
    return ("--only", f"framework={','.join(sorted(names - others))}") if names & others else ()


def _run(folder: Path, study: str, where: Sequence[str], words: Sequence[str]) -> int:
    """Run a study, make the data sets that it says are missing, and write its page."""
    name = f"{study}-mpi" if "mpi-here" in where else study
    argv = (
        "run",
        study,
        "--create-environments",
        *where,
        "--set",
        TOLERATE,
        "--name",
        name,
        *words,
    )
    done = _told(folder, *argv)
    for made in re.findall(r"To make it: bakeoff (.+)", done.stderr):
        bakeoff(folder, *made.split())
        done = _told(folder, *argv)
    sys.stderr.write(done.stderr)
    return done.returncode or bakeoff(folder, "report", f"runs/{name}")


def _told(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-P", "-m", "harness.cli", *words)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def bakeoff(folder: Path, *words: str) -> int:
    """Call the command in a folder; what it says goes to the terminal."""
    command = (sys.executable, "-P", "-m", "harness.cli", *words)
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
