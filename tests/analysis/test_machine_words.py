"""Say what a run was measured on, as far as it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.context.machine_words import (
    began_on,
    header,
    machine_in_words,
    named_machine,
    versions_in_words,
)
from harness.analysis.results import Results
from tests.reports import samples

NODE = {"cpu": "Xeon Phi 7250", "cores": 68}


def on_a_cluster(*hosts: str, **platform: Any) -> Results:
    """Results of a run under Slurm, whose first trials ran on some hosts."""
    told = samples.demo()
    told_platform = {"launcher": {"name": "slurm"}, "title": "A cluster under Slurm", **platform}
    trials = [replace(one, nodes=()) for one in told.cells[0].trials]
    trials[: len(hosts)] = [
        replace(one, nodes=(host,)) for one, host in zip(trials, hosts, strict=False)
    ]
    cells = (replace(told.cells[0], trials=tuple(trials)), *told.cells[1:])
    return replace(told, runs=(replace(told.runs[0], platform=told_platform),), cells=cells)


@pytest.mark.parametrize(
    ("hosts", "platform", "words"),
    [
        (("n1", "n2"), {"nodes": 2, "node": NODE}, "2 nodes, each Xeon Phi 7250, 68 cores"),
        (("n1", "n1"), {"nodes": 8, "node": NODE}, "1 of 8 nodes, each Xeon Phi 7250, 68 cores"),
        (("n1", "n2"), {"node": NODE}, "2 nodes, each Xeon Phi 7250, 68 cores"),
        (("n1", "n2"), {"nodes": 1, "node": NODE}, "2 nodes, each Xeon Phi 7250, 68 cores"),
        (("n1",), {"nodes": 1, "node": NODE}, "Xeon Phi 7250, 68 cores"),
        ((), {"nodes": 8, "node": NODE}, "1 of 8 nodes, each Xeon Phi 7250, 68 cores"),
    ],
)
def test_a_cluster_is_told_as_its_profile_claims_it_and_as_far_as_it_was_used(
    hosts: tuple[str, ...], platform: dict[str, Any], words: str
) -> None:
    told = on_a_cluster(*hosts, **platform)
    assert machine_in_words(told, told.runs[0]) == words


def test_what_cells_ask_for_is_used_where_no_trial_says_where_it_ran() -> None:
    told = samples.scaled()
    run = replace(told.runs[0], platform={"launcher": {"name": "slurm"}, "nodes": 16})
    most = max(cell.scale.nodes for cell in told.cells)
    assert machine_in_words(replace(told, runs=(run,)), run) == f"{most} of 16 nodes"


def test_of_a_profile_that_says_nothing_of_a_node_its_title_is_told() -> None:
    told = on_a_cluster("n1", "n2", nodes=2)
    assert named_machine(told, told.runs[0]) == "a cluster under Slurm, 2 nodes"
    assert header(told)[0].startswith("A cluster under Slurm, 2 nodes · ")


def test_of_nodes_that_nothing_describes_it_is_told_where_the_run_began() -> None:
    (run,) = on_a_cluster("n1", "n2", nodes=2).runs
    seen = {"machine": {"cpu_model": "AMD EPYC", "cores": 2}}
    began = replace(run, provenance=seen)
    assert began_on(began) == "AMD EPYC, 2 cores, no GPU"
    assert began_on(replace(run, provenance={})) == ""
    (described,) = on_a_cluster("n1", nodes=1, node=NODE).runs
    assert began_on(replace(described, provenance=seen)) == ""


def test_beside_other_machines_a_title_is_told_once() -> None:
    told = on_a_cluster("n1", nodes=2)
    both = replace(told, runs=(*told.runs, replace(samples.demo().runs[0], name="other")))
    assert header(both)[0].startswith("A cluster under Slurm, 1 of 2 nodes · ")
    assert header(both)[1].startswith("This machine · AMD EPYC")


@pytest.mark.parametrize(
    ("framework", "versions", "words"),
    [
        ("torch", {"torch": "2.13.0", "oneDNN": "3.7"}, "torch 2.13.0"),
        ("tensorflow@1.15", {"tensorflow": "1.15.5"}, "tensorflow@1.15 1.15.5"),
        (
            "keras",
            {"keras": "3.12.0", "tensorflow": "2.21.0", "numpy": "2.3"},
            "keras 3.12.0 on tensorflow 2.21.0",
        ),
        (
            "keras@jax",
            {"keras": "3.12.0", "jax": "0.10.2", "jaxlib": "0.10.2"},
            "keras@jax 3.12.0 on jax 0.10.2",
        ),
        (
            "keras@torch",
            {"keras": "3.12.0", "torch": "2.13.0"},
            "keras@torch 3.12.0 on torch 2.13.0",
        ),
        ("mine", {}, ""),
    ],
)
def test_a_framework_is_told_with_its_version_and_what_computes_for_it(
    framework: str, versions: dict[str, str], words: str
) -> None:
    told = samples.demo()
    cells = tuple(replace(one, framework=framework, versions=versions) for one in told.cells)
    said = versions_in_words(replace(told, cells=cells), told.runs[0])
    assert said.partition(", bakeoff")[0] == words or (not words and said.startswith("bakeoff"))
