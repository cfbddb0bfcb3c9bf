"""This file reads platform profiles: a user's own, refined ones, this machine, and broken ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.spec.platform import load_platform

Write = Callable[..., Path]

PARENT = """\
title = "A KNL cluster"
nodes = 8305
accelerators = []
[node]
cpu = "Intel Xeon Phi 7250"
sockets = 1
cores = 68
threads_per_core = 4
memory = [
  { kind = "MCDRAM", size = "16 GB", mode = "cache" },
  { kind = "DDR", size = "96 GB" },
]
[launcher]
name = "slurm"
settings = { partition = "knl", exclusive = true }
[environment]
OMP_PLACES = "cores"
"""


def test_this_machine_is_described_as_it_is_found() -> None:
    here = load_platform()
    assert here.name == "local"
    assert here.offers()["cpus"] == len(os.sched_getaffinity(0))
    assert here.offers()["available_nodes"] == 1
    assert here.offers()["memory"] is not None
    assert here.accelerators is not None


def test_a_users_own_profile_is_found_in_the_project_folder(write: Write) -> None:
    write(PARENT, "platforms/knl.toml")
    platform = load_platform("knl")
    assert platform.offers() == {
        "gpus": 0,
        "cpus": 272,
        "memory": 112 * 10**9,
        "gpu_memory": None,
        "available_nodes": 8305,
    }


def test_a_users_own_profile_is_found_in_their_configuration(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    write(PARENT, "configuration/bakeoff/platforms/knl.toml")
    assert load_platform("knl").title == "A KNL cluster"


def test_a_profile_beside_the_study_comes_first(write: Write) -> None:
    write(PARENT, "platforms/knl.toml")
    write('title = "Beside"', "study/platforms/knl.toml")
    assert load_platform("knl", beside=Path("study")).title == "Beside"


def test_extending_lays_tables_over_each_other_and_replaces_lists(write: Write) -> None:
    write(PARENT, "platforms/knl.toml")
    write(
        'title = "Flat"\nextends = "knl"\n'
        '[node]\nmemory = [{ kind = "MCDRAM", size = "16 GB", mode = "flat" }]\n'
        '[launcher]\nsettings = { partition = "flat" }\n[environment]\nKMP_BLOCKTIME = "0"\n',
        "platforms/knl-flat.toml",
    )
    flat = load_platform("knl-flat")
    assert (flat.name, flat.title, flat.nodes) == ("knl-flat", "Flat", 8305)
    assert flat.node.cores == 68
    assert [tier.mode for tier in flat.node.memory] == ["flat"]
    assert flat.launcher.name == "slurm"
    assert flat.launcher.settings == {"partition": "flat", "exclusive": True}
    assert flat.environment == {"OMP_PLACES": "cores", "KMP_BLOCKTIME": "0"}


def test_a_users_profile_may_extend_the_shipped_one_of_the_same_name(write: Write) -> None:
    write('title = "Mine"\nextends = "local"\n[observer]\ncores = 0\n', "platforms/local.toml")
    mine = load_platform("local")
    assert (mine.title, mine.observer.cores, mine.nodes) == ("Mine", 0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes = 1", "title: is missing."),
        ('title = "x"\nnoeds = 1', ":2: noeds: unknown key. Did you mean 'nodes'?"),
        ('title = "x"\nnodes = 0', ":2: nodes: '0' must be at least 1."),
        ('title = "x"\nname = "y"', ":2: name: the file's name is the platform's; leave it out."),
        ('title = "x"\nextends = "lokal"', ":2: extends: no platform is called 'lokal'. Did you"),
        ('title = "x"\nextends = "p"', ":2: extends: no platform is called 'p'."),
        (
            'title = "x"\n[node]\ncluster_mode = "snc4"',
            (
                ":3: node.cluster_mode: 'snc4' is not allowed. Did you mean 'snc-4'?\n"
                "    Known: all2all, hemisphere, quadrant, snc-2, snc-4."
            ),
        ),
        (
            'title = "x"\n[[node.memory]]\nkind = "DDR"\nsize = 96',
            ":4: node.memory[0].size: '96' needs a unit, for example \"16 GiB\".",
        ),
        (
            'title = "x"\n[[accelerators]]\nmodel = "A100"\ncuont = 4',
            ":4: accelerators[0].cuont: unknown key. Did you mean 'count'?",
        ),
        (
            'title = "x"\n[storage.scratch]\npath = "/s"\nroles = ["data", "fats"]',
            ":4: storage.scratch.roles[1]: 'fats' is not allowed. Did you mean 'fast'?",
        ),
        (
            (
                'title = "x"\n[ceilings.fp32]\nvalue = 1e12\nunit = "FLOP/s"\ntag = "guessed"\n'
                'source = "me"'
            ),
            ":5: ceilings.fp32.tag: 'guessed' is not allowed.\n    Known: measured, declared.",
        ),
        (
            'title = "x"\n[frameworks.torch.container]\nengine = "apptainer"',
            ":2: frameworks.torch.container.image: is missing.",
        ),
        ('title = "x"\n[environment]\nOMP_NUM_THREADS = 4', "'4' must be text in quotes."),
        ('title = "x"\n[observer]\ncores = -1', ":3: observer.cores: '-1' must be at least 0."),
    ],
)
def test_a_broken_profile_says_where_and_what(text: str, message: str, write: Write) -> None:
    write(text, "platforms/p.toml")
    with pytest.raises(UsageError) as caught:
        load_platform("p")
    said = str(caught.value)
    assert said.startswith("platforms/p.toml:")
    assert message in said


def test_profiles_that_extend_each_other_are_refused(write: Write) -> None:
    write('title = "a"\nextends = "b"', "platforms/a.toml")
    write('title = "b"\nextends = "a"', "platforms/b.toml")
    with pytest.raises(UsageError, match=r"'a' extends this profile in its turn"):
        load_platform("a")


def test_an_unknown_platform_names_the_nearest(write: Write) -> None:
    write(PARENT, "platforms/minna.toml")
    with pytest.raises(UsageError, match=r"no platform is called 'mina'. Did you mean 'minna'?"):
        load_platform("mina")
