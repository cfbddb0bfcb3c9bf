"""Hold the shipped profiles to their own rule: no value without a document."""

from __future__ import annotations

import pytest

from harness import plugins
from harness.platform.platform import load_platform
from harness.platform.sources import hardware_leaves

SHIPPED = sorted(plugins.files("platforms"))
HERE = ("local", "laptop", "own-builds", "simulated-cluster")
MACHINES = [name for name in SHIPPED if name not in HERE]


def test_the_papers_machines_and_what_people_buy_now_are_there() -> None:
    assert set(SHIPPED) >= {
        *("minsky-p100", "dgx1-p100", "knl-7210-cache", "knl-7250-flat", "nurion", "cori-knl"),
        *("summit", "taiwania", "dgx-h100", "gh200", "xeon-max-flat", "xeon-max-cache"),
        *(
            "cloud-gpu-vm",
            "slurm-cluster",
            "pbs-cluster",
            "lsf-cluster",
            "mpi-cluster",
            "laptop",
            "local",
            "own-builds",
        ),
    }


@pytest.mark.parametrize("name", MACHINES)
def test_each_value_names_its_document(name: str) -> None:
    platform = load_platform(name)
    for place, value in hardware_leaves(platform.model_dump(exclude_none=True)):
        if place != "nodes" and value != ():
            assert place in platform.sources, place
    for ceiling in platform.ceilings.values():
        assert ceiling.tag == "declared"


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_that_nobody_here_has_run_on_says_so(name: str) -> None:
    assert load_platform(name).tried is False
    assert (
        "Nobody here has run on this machine" in (plugins.files("platforms")[name].path.read_text())
        or "claims nothing about hardware" in plugins.files("platforms")[name].path.read_text()
    )
