"""A framework of a provider package: all that is known about it comes from its own file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments.identity.recorded_environment import NOT_RECORDED, redacted
from harness.environments.lock import load_lock
from harness.errors import UsageError
from harness.launch.launchers.local import launch
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import Platform
from harness.platform.starting import Container, FrameworkThere
from harness.ranks import rank_environment
from harness.study.framework import framework_info
from harness.study.study import load_study
from tests.launch.test_local import PLATFORM, WORKER, job
from tests.plugins.conftest import Install

FILE = """
name = "mine"
title = "Mine"
module = "theirs.mine"
kinds = ["train"]
devices = ["cpu"]

[strategies.ring]
environment = "ring"
several_devices = true
meets_over_mpi = true

[strategies.ring.variables]
several_ranks = { MINE_PEERS = "$addresses", MINE_RANK = "$rank/$size" }

[factors]
input = ["files"]
reader = ["own", "pread"]
reader_threads = [1]
prefetch = "any"

[readers.own]
formats = ["hdf5"]
prefetch = 3

[variables]
steering = ["MINE_*"]
foreign = ["MINE_CRAFT*"]
into_containers = ["MINE_TUNED"]
caches = { MINE_CACHE = "mine/kernels" }
every_rank = { MINE_THREADS = "$threads" }

[[requires]]
when = { reader = "own" }
needs = "shuffle = none"
why = "its reader keeps the order"
"""
STUDY = """
title = "Theirs"
[matrix]
workload = "tinycnn"
framework = "mine"
"""
RING = replace(
    job(2),
    framework="mine",
    adapter_module="theirs.mine",
    environment="mine@ring",
    strategy="ring",
)

Planned = Callable[[str], Plan]


@pytest.fixture
def theirs(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install it; give the folder of the user's own locks."""
    install("theirs", group="adapters", mine__dot__toml=FILE, mine__dot__py="")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    locks = tmp_path / "config" / "bakeoff" / "environments"
    locks.mkdir(parents=True)
    return locks


@pytest.fixture
def planned(theirs: Path, tmp_path: Path) -> Planned:
    def plan(added: str) -> Plan:
        path = tmp_path / "study.toml"
        path.write_text(STUDY + added, encoding="utf-8")
        two = {"cpus": 4, "memory": [{"kind": "DDR", "size": "8 GiB"}]}
        machine = {"name": "box", "title": "A box", "nodes": 1, "node": two, "accelerators": []}
        return make_plan(load_study(path), Platform.model_validate(machine))

    return plan


def test_a_strategy_of_its_own_takes_the_environment_that_its_file_names(
    theirs: Path, planned: Planned
) -> None:
    ring = 'strategy = "ring"\nranks_per_node = 2\n'
    with pytest.raises(UsageError, match="there is no environment called 'mine@ring'"):
        planned(ring)
    (theirs / "mine@ring.toml").write_text('title = "Mine with its ring"\n')
    assert [cell.environment for cell in planned(ring).cells] == ["mine@ring"]
    assert planned('strategy = "ring"\ndevices_per_rank = 2\n').cells[0].strategy == "ring"


def test_a_misspelt_strategy_of_its_own_names_the_nearest(planned: Planned) -> None:
    with pytest.raises(UsageError, match=r"no strategy is called 'rign'. Did you mean 'ring'?"):
        planned('strategy = "rign"\n')


@pytest.mark.parametrize(
    ("added", "why"),
    [
        ('format = "tfrecord"\n', "own reads hdf5 only, not tfrecord"),
        ('format = "hdf5"\nshuffle = "global"\n', "its reader keeps the order"),
    ],
)
def test_the_limits_of_its_reader_are_holes_with_their_reason(
    planned: Planned, added: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        planned('input = "files"\nreader = "own"\n' + added)


def test_its_reader_reads_ahead_as_its_file_says(planned: Planned) -> None:
    plan = planned('input = "files"\nreader = ["own", "pread"]\nformat = "hdf5"\n')
    assert [cell.factors["prefetch"] for cell in plan.cells] == [3, 0]


@pytest.mark.usefixtures("theirs")
def test_its_ranks_are_told_of_each_other_in_its_own_words() -> None:
    first, second = launch("job.json", RING, PLATFORM, WORKER).ranks
    assert first.env["MINE_RANK"] == "0/2"
    assert second.env["MINE_RANK"] == "1/2"
    assert second.env["MINE_PEERS"] == '["127.0.0.1:29501","127.0.0.1:29502"]'
    assert first.env["MINE_THREADS"] == first.env["OMP_NUM_THREADS"]
    assert "TF_CONFIG" not in first.env


@pytest.mark.usefixtures("theirs")
def test_its_caches_are_private_and_its_container_keeps_what_it_needs() -> None:
    own = framework_info("mine").rank_variables("ring", {})
    host = {"MINE_TUNED": "1", "MINE_OTHER": "2", "HOME": "/home/ada"}
    env = rank_environment.environment(host, Path("/run/caches/9f"), own.caches, None)
    assert env["MINE_CACHE"] == "/run/caches/9f/mine/kernels"
    there = FrameworkThere(container=Container(engine="bwrap", image="/", interpreter="py"))
    platform = PLATFORM.model_copy(update={"frameworks": {"mine": there}})
    boxed = replace(RING, factors={**RING.factors, "container": True})
    (rank, _) = launch("job.json", boxed, platform, replace(WORKER, env=env)).ranks
    words = " ".join(rank.argv)
    for kept in ("MINE_TUNED", "MINE_CACHE", "MINE_RANK", "MINE_PEERS", "MINE_THREADS"):
        assert f"--setenv {kept} " in words
    assert "MINE_OTHER" not in words
    assert "--bind /run/caches/9f /run/caches/9f" in words


def test_runs_record_the_variables_that_steer_it_and_where_it_lies(theirs: Path) -> None:
    (theirs / "mine.toml").write_text('title = "Mine"\nvariable = "MINE_PYTHON"\n')
    (theirs / "own.toml").write_text('title = "Own"\nvariable = "OWN_PYTHON"\n')
    assert load_lock("own").variable == "OWN_PYTHON"
    taken = redacted({"MINE_SPEED": "9", "MINE_CRAFT": "9", "OWN_PYTHON": "/opt/py"})
    hidden = NOT_RECORDED
    assert taken == {"MINE_CRAFT": hidden, "MINE_SPEED": "9", "OWN_PYTHON": "/opt/py"}
