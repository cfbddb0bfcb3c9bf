"""Probe nodes that a launcher reaches, as a login node does for its compute nodes."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from harness.errors import Unavailable, UsageError
from harness.probe import remote
from harness.ranks.remote_node import through
from harness.toml.write import toml_text
from harness.worker.facts import node_survey
from tests.cli.command import bakeoff
from tests.needs import python37

SSH = '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\nshift\nexec sh -c "$*"\n'
"""An ssh whose hosts are all this one."""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_a_node_behind_a_launcher_is_described_as_it_describes_itself(
    tmp_path: Path, ssh: None
) -> None:
    here = bakeoff("platforms", "probe", "--json", cwd=tmp_path)
    there = bakeoff(
        *("platforms", "probe", "--json", "--through", "ssh", "--nodes", "n[1-2]"), cwd=tmp_path
    )
    assert there.returncode == 0, there.stderr
    own, told = json.loads(here.stdout), json.loads(there.stdout)
    for part in ("node", "accelerators", "network", "storage", "sources"):
        assert told.get(part) == own.get(part), part
    assert told["nodes"] == 2
    assert told["launcher"] == {"name": "ssh", "settings": {"hosts": "n[1-2]"}}


def test_a_platform_names_its_launcher_and_hosts(
    tmp_path: Path, ssh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "ours.toml").write_text(
        'title = "ours"\n[launcher]\nname = "ssh"\nsettings = { hosts = "a,b" }\n'
    )
    monkeypatch.chdir(tmp_path)
    assert [str(node) for node in through("ours", None)] == ["a", "b"]
    assert [str(node) for node in through("ours", "b")] == ["b"]
    assert through("ours", None)[0].run("echo", "two words; $HOME") == "two words; $HOME\n"
    with pytest.raises(Unavailable, match=r"a \(ssh\): false ended with 1"):
        through("ours", None)[0].run("false")
    with pytest.raises(UsageError, match="'theirs' is neither a launcher nor a platform"):
        through("theirs", None)


def test_srun_is_asked_for_what_the_profile_says() -> None:
    (node,) = through("slurm", "n1")
    node.settings["partition"] = "knl"  # type: ignore[index]
    assert node._environment()["SLURM_PARTITION"] == "knl"


def test_nodes_that_differ_are_named() -> None:
    told = json.loads(json.dumps(node_survey.survey()))
    other = {
        **told,
        "files": {
            **told["files"],
            "/proc/meminfo": "MemTotal: 4096 kB\nMemAvailable: 1 kB",
        },
    }
    every = {"n1": remote.look_there(told, ()), "n2": remote.look_there(other, ())}
    (words,) = remote.odd_ones(every)
    assert words.startswith("n2 differs from n1: node.memory[0].size: 4194304 (not ")


def test_an_old_python_on_the_node_is_enough() -> None:
    text = Path(node_survey.__file__).read_text()
    said = subprocess.run([python37(), "-c", text], capture_output=True, text=True, check=True)
    told = json.loads(said.stdout)
    assert told["affinity"] == sorted(os.sched_getaffinity(0))
    assert told["files"]["/proc/meminfo"].startswith("MemTotal:")


TOPOLOGY = """\
\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV2\tSYS\t0-19\t0\tN/A
GPU1\tNV2\t X \tSYS\t0-19\t0\tN/A
GPU2\tSYS\tSYS\t X \t20-39\t1\tN/A

Legend:
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def test_gpus_are_read_from_what_their_driver_prints() -> None:
    row = "{}, Tesla P100, 535.1, 16280, Enabled, [N/A], 300.00\n"
    told = json.loads(json.dumps(node_survey.survey()))
    told["devices"] = ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"]
    told["answers"] |= {"gpus": "".join(map(row.format, "abc")), "links": TOPOLOGY}
    seen = remote.look_there(told, ("torch 2.1",))
    (node,) = through("local", None)
    data = tomllib.loads(toml_text(remote.profile_there(seen, "x", node, 1)))
    (gpus,) = data["accelerators"]
    assert (gpus["model"], gpus["count"], gpus["power_limit"]) == ("Tesla P100", 3, "300 W")
    assert gpus["graph"] == [["0", "1", "NV2"], ["0", "2", "SYS"], ["1", "2", "SYS"]]


def test_a_node_cannot_have_files_written_elsewhere(tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    told = {"files": {f"{'../' * 30}{aim}": "x"}, "devices": [], "uname": ["", "", "", "", ""]}
    with pytest.raises(Unavailable, match="cannot be"):
        remote.look_there(told, [])
    assert not aim.exists()


def test_a_nodes_own_python_tells_its_frameworks() -> None:
    assert remote.importable(["torch-2.1.0", "numpy-1.26.0"]) == ("torch 2.1.0",)


def test_nodes_without_a_launcher_are_refused(tmp_path: Path) -> None:
    answer = bakeoff("platforms", "probe", "--nodes", "n1", cwd=tmp_path)
    assert answer.returncode == 2
    assert "--nodes needs --through" in answer.stderr


def test_a_launcher_that_is_not_installed_is_told() -> None:
    (node,) = through("ssh", "n1")
    node.settings["command"] = "ssh-of-nobody"  # type: ignore[index]
    with pytest.raises(Unavailable, match="ssh-of-nobody is no program here"):
        remote.tell(node)
