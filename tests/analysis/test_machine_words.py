"""Say what a run was measured on, as far as it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.analysis.context.machine_words import machine_in_words
from tests.reports import samples


def claimed(**platform: Any) -> str:
    run = samples.demo().runs[0]
    return machine_in_words(replace(run, platform={"launcher": {"name": "slurm"}, **platform}))


def test_a_cluster_is_told_as_its_profile_claims_it() -> None:
    node = {"cpu": "Xeon Phi 7250", "cores": 68}
    assert claimed(nodes=2, node=node) == "2 nodes, each Xeon Phi 7250, 68 cores"


def test_of_a_profile_that_says_nothing_of_a_node_nothing_is_begun() -> None:
    assert claimed(nodes=2) == "2 nodes"
