"""Faults that are planted on one of three hosts, each found and named by a screen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import Site
from tests.needs import framework

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long,
    pytest.mark.timeout(900),
]
SICK = "h2"
FLIP = """
_forward = Linear.forward
_is_flipped = []
def _flipped(self, given):
    if not _is_flipped:
        _is_flipped.append(True)
        with torch.no_grad():
            self.weight.view(-1)[:1].view(torch.int32).bitwise_xor_(1 << 18)
    return _forward(self, given)
Linear.forward = _flipped
"""
"""Turns over one bit of the first weight that any linear layer uses, once."""


def screen(site: Site, *words: str) -> dict[str, Any]:
    verb = (sys.executable, "-P", "-m", "harness.cli", "screen", "--platform", "there.toml")
    told = site.hosts.run("h0", *verb, *words, "--json", check=False, timeout_s=800.0)
    assert (told.returncode, bool(told.stdout)) == (1, True), told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_a_node_behind_a_narrow_cable_is_named(site, open_mpi):
    framework("mpi")
    site.platform("mpirun", environment=open_mpi(), hosts="h[1-3]", ssh=site.hosts.ssh)
    site.hosts.shape(SICK, "200mbit")
    try:
        found = screen(site, "--framework", "mpi", "--until", "0.5 s")
    finally:
        site.hosts.unshape(SICK)
    assert found["sick"] == [SICK], found
    assert found["measures"] == ["point-to-point, pairs"]
    assert [one["nodes"] for one in found["together"]] == [3]


def test_a_flipped_bit_of_a_weight_is_told_by_the_losses(site):
    python = framework("torch")
    (linear,) = python.parents[1].glob("lib/python3*/site-packages/torch/nn/modules/linear.py")
    faulty = Path(site.folder) / "linear.py"
    faulty.write_text(linear.read_text("utf-8") + FLIP, "utf-8")
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    site.hosts.run(SICK, "mount", "--bind", str(faulty), str(linear))  # in its own namespace
    try:
        found = screen(site, "--framework", "torch", "--blocks", "1", "--until", "0.2 s")
    finally:
        site.hosts.run(SICK, "umount", str(linear))
    assert found["sick"] == [SICK], found
    (wrong,) = found["mismatches"]
    assert (wrong["node"], wrong["trials"]) == (SICK, wrong["of"])
