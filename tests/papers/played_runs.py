"""Play what the papers' studies ask of many nodes and of linked GPUs, at paper size, by a model.

    python -m tests.papers.played_runs [--to FOLDER]

The profiles in ``played/`` extend those of the papers' machines and say what of them is assumed.
The model knows a cell's nodes and ranks, the link between GPUs and one file system; it tells no
framework from another, and no format or tier.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.papers.__main__ import bakeoff

PROFILES = Path(__file__).with_name("played")
PLAYED = (
    ("shams2017", "dgx1-played", ("framework=torch", "device=gpu", "workload=alexnet")),
    ("wang2018", "cloud-played", ("strategy=multiworker", "workload=resnet50")),
    ("bae2019", "nurion-played", ("framework=null", "format=raw", "shuffle=global")),
    ("lee2021", "cori-played", ("workload=neuron-inverter", "cell_seed=1")),
)
"""Which study runs on which profile, and with which of its cells."""


def main() -> int:
    """Run each study, and write its page."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.played_runs")
    parser.add_argument("--to", type=Path, default=Path("runs/papers"))
    folder = parser.parse_args().to.resolve()
    shutil.copytree(PROFILES, folder / "platforms", dirs_exist_ok=True)
    failed = 0
    for study, profile, cells in PLAYED:
        name = f"{study}-played"
        only = [word for one in cells for word in ("--only", one)]
        argv = ("run", study, "--size", "paper", "--platform", profile, "--name", name, *only)
        failed |= bakeoff(folder, *argv) or bakeoff(folder, "report", f"runs/{name}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
