"""Build environments for nodes that are offline, or of another architecture."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments import cache, on_nodes, worker_python
from harness.environments.lock import EnvironmentReference, load_lock
from harness.environments.package_index import pip_for_nodes
from harness.errors import Unavailable
from harness.platform.hardware import Node
from harness.platform.platform import Platform
from harness.platform.starting import Launcher
from harness.ranks.remote_node import RemoteNode, through
from tests.tiny_framework import TinyFramework, Told

TINY = EnvironmentReference.parse("tiny")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteNode:
    """Give a node behind an ssh that greets first, and where pip knows of no index."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\nshift\n'
        'echo "Welcome to this cluster"\n'
        'exec env -i HOME=/ PATH="$PATH" PIP_INDEX_URL=http://127.0.0.1:9/ sh -c "$*"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return through("ssh", "n1")[0]


@pytest.mark.engine
def test_an_offline_node_gets_its_wheels_from_a_shared_folder(
    tiny: TinyFramework, told: Told, node: RemoteNode
) -> None:
    tiny.offer("1.0", needs=('other==9.9; platform_machine == "pdp11"',))
    built = on_nodes.create(TINY, told, node, python=Path(sys.executable))
    assert (dict(built.packages), built.through) == ({"tiny": "1.0"}, "ssh")
    assert [one.name for one in built.root.parents[1].glob("wheels/*/tiny*")] == [
        "tiny-1.0-py3-none-any.whl"
    ]
    again = on_nodes.create(TINY, told, node, python=Path(sys.executable))
    assert again == built
    assert "already built" in told.said[-1]
    there = Platform.model_construct(
        name="there",
        launcher=Launcher(name="ssh"),
        node=Node(architecture=platform.machine()),
        frameworks={},
    )
    assert worker_python.resolve("tiny", there).argv == (str(built.executable),)
    cache.write(replace(built, python=built.python.replace(platform.machine(), "ppc64le")))
    assert cache.find(load_lock("tiny"), TINY, "cpu") is None, "it does not run here"
    assert cache.find(load_lock("tiny"), TINY, "cpu", "ppc64le") is not None


def test_a_node_without_the_shared_folder_is_told(
    tiny: TinyFramework, told: Told, node: RemoteNode
) -> None:
    blind = replace(node, reach=lambda _, argv, __: ("true",) if argv[0] == "cat" else argv)
    with pytest.raises(Unavailable, match=r"n1 does not see (.|\n)* share"):
        on_nodes.create(TINY, told, blind, python=Path(sys.executable))


def test_a_node_without_a_fitting_python_is_told(node: RemoteNode) -> None:
    with pytest.raises(Unavailable, match=r"tiny needs Python ==3.99, and n1 has none of"):
        pip_for_nodes.find(node, "==3.99", explicit=None, purpose="tiny")


def power9(node: RemoteNode) -> pip_for_nodes.Target:
    """Give this Python as if it ran on a POWER9 under RHEL 8."""
    here = pip_for_nodes.find(node, ">=3.7", explicit=Path(sys.executable), purpose="x")
    python = replace(here.python, machine="ppc64le")
    markers = {**here.markers, "platform_machine": "ppc64le"}
    return pip_for_nodes.Target(python, ("glibc", "2.28"), markers)


def test_wheels_are_chosen_by_the_nodes_tags_and_markers(
    tiny: TinyFramework, node: RemoteNode, tmp_path: Path
) -> None:
    plain = tiny.offer("1.0", needs=('other==9.9; platform_machine == "ppc64le"',))
    wheel = tiny.offer("9.9", name="other")
    wheel.rename(wheel.with_name("other-9.9-py3-none-manylinux_2_17_ppc64le.whl"))
    there = power9(node)
    assert there.tags[:2] == ("manylinux_2_28_ppc64le", "manylinux_2_27_ppc64le")
    chosen = there.plan(["tiny==1.0"], {})
    assert sorted(one.name for one in chosen) == ["other", "tiny"]
    there.fetch(chosen, tmp_path)
    assert (tmp_path / plain.name).is_file()
    assert (tmp_path / "other-9.9-py3-none-manylinux_2_17_ppc64le.whl").is_file()


def test_a_wheel_that_is_not_the_one_that_was_chosen_is_not_fetched(
    tiny: TinyFramework, node: RemoteNode, tmp_path: Path
) -> None:
    tiny.offer("1.0")
    there = power9(node)
    (chosen,) = there.plan(["tiny==1.0"], {})
    tiny.offer("1.0", source="changed = True\n")
    with pytest.raises(Unavailable, match="DO NOT MATCH THE HASHES"):
        there.fetch([chosen], tmp_path)
