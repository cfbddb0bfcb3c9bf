"""Faults that are planted on one of three hosts, each found and named by a screen."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.engines.conftest import Site
from tests.engines.planted_nodes import flipped, shaped
from tests.needs import framework

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long,
    pytest.mark.timeout(900),
]
SICK = "h2"


def screen(site: Site, *words: str) -> dict[str, Any]:
    verb = (sys.executable, "-P", "-m", "harness.cli", "screen", "--platform", "there.toml")
    told = site.hosts.run("h0", *verb, *words, "--json", check=False, timeout_s=800.0)
    assert (told.returncode, bool(told.stdout)) == (1, True), told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_a_node_behind_a_narrow_cable_is_named(site, open_mpi):
    framework("mpi")
    site.platform("mpirun", environment=open_mpi(), hosts="h[1-3]", ssh=site.hosts.ssh)
    with shaped(site.hosts, SICK, "200mbit"):
        found = screen(site, "--framework", "mpi", "--until", "0.5 s")
    assert found["sick"] == [SICK], found
    assert found["measures"] == ["point-to-point, pairs"]
    assert [one["nodes"] for one in found["together"]] == [3]


def test_a_flipped_bit_of_a_weight_is_told_by_the_losses(site):
    site.platform("ssh", hosts="h[1-3]", command=site.hosts.ssh)
    with flipped(site.hosts, SICK, bit=18):
        found = screen(site, "--measure", "train", "--blocks", "1", "--until", "0.2 s")
    assert found["sick"] == [SICK], found
    (wrong,) = found["mismatches"]
    assert (wrong["node"], wrong["trials"]) == (SICK, wrong["of"])
