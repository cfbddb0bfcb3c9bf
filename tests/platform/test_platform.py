"""Read platform profiles: a user's own, refined ones, this machine, and broken ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.platform.platform import load_platform

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
settings = { partition = "knl", account = "exa" }
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
        "memory": 96 * 10**9,  # what is used as a cache cannot be allocated
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
    assert flat.launcher.settings == {"partition": "flat", "account": "exa"}
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
        (
            'title = "x"\n[launcher]\nname = "slurm"\nsettings = { partition = true }',
            ":4: launcher.settings.partition: true must be text in quotes.",
        ),
        (
            'title = "x"\n[launcher]\nname = "slurm"\npartition = "gpu"',
            (
                ":4: launcher.partition: unknown key here. It belongs in [launcher.settings]: "
                "launcher.settings.partition."
            ),
        ),
        (
            'title = "x"\nqueue = "gpu"\ncores = 4',
            (
                ":2: queue: unknown key here. It belongs in [launcher.settings]: "
                "launcher.settings.queue."
            ),
        ),
        (
            'title = "x"\ncores = 4',
            ":2: cores: unknown key here. It belongs in [node]: node.cores.",
        ),
        ('title = "x"\nnodes = 0', ":2: nodes: 0 must be at least 1."),
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
            ':4: node.memory[0].size: 96 needs a unit, for example "16 GiB".',
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
            'title = "x"\n[frameworks.torch.container]\nengine = "apptainer"',
            ":2: frameworks.torch.container.image: is missing.",
        ),
        ('title = "x"\n[environment]\nOMP_NUM_THREADS = 4', "4 must be text in quotes."),
        (
            'title = "x"\n[ceilings.gemm]\ncompute = "4 TFLOP/s"\ntag = "guessed"',
            ":4: ceilings.gemm.tag: 'guessed' is not allowed.\n    Known: measured, declared, ",
        ),
        (
            'title = "x"\n[ceilings.gemm]\ncompute = "4 TFLOP/s"\ntag = "declared"',
            ":2: ceilings.gemm: is declared, so its source must say where or by which run.",
        ),
        (
            'title = "x"\n[ceilings.gemm]\ncompute = "4 TFLOPS"\ntag = "declared"\nsource = "y"',
            ":3: ceilings.gemm.compute: '4 TFLOPS' needs a unit of computing, for example",
        ),
        (
            'title = "x"\n[ceilings.triad]\nbandwidth = "90 GB/s"\ntag = "unknown"',
            ":2: ceilings.triad: is unknown and has a value.",
        ),
        (
            'title = "x"\n[network]\nfabric = "EDR"\nbandwidth = "100 Gb"',
            ":4: network.bandwidth: '100 Gb' needs a unit of bandwidth, for example \"12.5 GB/s\".",
        ),
        (
            'title = "x"\n[[node.memory]]\nkind = "DDR"\nsize = "96 GiB"\nmode = "flat"',
            ":2: node.memory[0]: mode belongs to fast memory (HBM, MCDRAM), not to DDR.",
        ),
        (
            'title = "x"\n[node]\nsockets = 2\ncores = 7',
            ":2: node: 7 cores do not divide among 2 sockets.",
        ),
        (
            'title = "x"\n[node]\nnuma_distances = [[10, 31]]',
            "numa_distances must be square",
        ),
        (
            'title = "x"\n[[accelerators]]\nmodel = "P100"\ncount = 4\ngraph = [["0", "4", "NV2"]]',
            ":2: accelerators[0]: graph: there is no accelerator 4 among 4.",
        ),
        (
            'title = "x"\n[[accelerators]]\nmodel = "P100"\ncount = 4\ngraph = [["0", "1"]]',
            ":5: accelerators[0].graph: ['0', '1'] must name two accelerators and their link",
        ),
        (
            'title = "x"\n[sources]\n"node.coers" = { declared = "a leaflet" }',
            ":3: sources.node.coers: a profile has no 'coers' there. Did you mean 'cores'?",
        ),
        (
            'title = "x"\n[sources]\nnode = { declared = "a", measured = "b" }',
            ":3: sources.node: must be one of measured, declared, unknown",
        ),
        (
            'title = "x"\nprice_per_node_hour = "3.06"',
            ":2: price_per_node_hour: '3.06' must be an amount and a currency",
        ),
        (
            'title = "x"\n[node]\npower_limit = "300"',
            ":3: node.power_limit: '300' needs a unit of power",
        ),
        (
            'title = "x"\n[binding]\nmemory = "mcdram"',
            ":3: binding.memory: 'mcdram' is not allowed.",
        ),
        (
            'title = "x"\n[launcher]\nname = "slrum"',
            ":3: launcher.name: no launcher is called 'slrum'. Did you mean 'slurm'?",
        ),
        (
            'title = "x"\n[frameworks.trch]\ninterpreter = "/py"',
            ":2: frameworks.trch: no framework is called 'trch'. Did you mean 'torch'?",
        ),
        (
            'title = "x"\n[frameworks.torch.container]\nengine="bwrap"\nimage="i"\nbinds=["d"]',
            ":5: frameworks.torch.container.binds[0]: 'd' is no bind: write /host, ",
        ),
        (
            'title = "x"\n[observer]\nrates = { procesor = 1 }',
            ":3: observer.rates.procesor: no source is called 'procesor'. Did you mean",
        ),
        (
            'title = "x"\n[storage.scratch]\npath = "scratch"',
            ":3: storage.scratch.path: 'scratch' must begin with '/'.",
        ),
        (
            'title = "x"\n[node]\nnuma_nodes = 4\nnuma_distances = [[10]]',
            ":2: node: numa_distances has 1 rows for 4 NUMA nodes.",
        ),
        ('title = "x"\n[observer]\ncores = -1', ":3: observer.cores: -1 must be at least 0."),
    ],
)
def test_a_broken_profile_says_where_and_what(text: str, message: str, write: Write) -> None:
    write(text, "platforms/p.toml")
    with pytest.raises(UsageError) as caught:
        load_platform("p")
    said = str(caught.value)
    assert said.startswith("platforms/p.toml:")
    assert message in said


def test_variants_of_frameworks_have_places_of_their_own(write: Write) -> None:
    places = '[frameworks."jax[orbax]"]\ninterpreter = "/a"\n[frameworks."torch@horovod"]\n'
    write('title = "x"\n' + places, "platforms/p.toml")
    assert set(load_platform("p").frameworks) == {"jax[orbax]", "torch@horovod"}


def test_profiles_that_extend_each_other_are_refused(write: Write) -> None:
    write('title = "a"\nextends = "b"', "platforms/a.toml")
    write('title = "b"\nextends = "a"', "platforms/b.toml")
    with pytest.raises(UsageError, match=r"'a' extends this profile in its turn"):
        load_platform("a")


def test_an_unknown_platform_names_the_nearest(write: Write) -> None:
    write(PARENT, "platforms/minna.toml")
    with pytest.raises(UsageError, match=r"no platform is called 'mina'. Did you mean 'minna'?"):
        load_platform("mina")


def test_each_value_keeps_its_source_through_extending(write: Write) -> None:
    write(
        PARENT + '[sources]\nnode = { declared = "the data sheet" }\n'
        '"node.memory" = { measured = "probe" }\n'
        '"network.bandwidth" = { unknown = "no document" }\n',
        "platforms/knl.toml",
    )
    write('title = "x"\nextends = "knl"\n[node]\ncores = 64\n', "platforms/mine.toml")
    parent, mine = load_platform("knl").sources, load_platform("mine").sources
    assert (parent["node.cores"].tag, parent["node.cores"].words) == ("declared", "the data sheet")
    assert parent["node.memory[0].size"].tag == "measured"
    assert parent["network.bandwidth"].tag == "unknown"
    assert "node.cores" not in mine, "nobody said where the new value is from"
    assert mine["node.sockets"] == parent["node.sockets"]


def test_what_is_found_while_planning_counts_as_measured() -> None:
    assert load_platform().sources["node.cpus"].tag == "measured"


def test_quantities_are_read_in_their_base_units(write: Write) -> None:
    write(
        'title = "x"\n[network]\nfabric = "EDR"\nbandwidth = "100 Gbit/s"\n'
        '[[accelerators]]\nmodel = "P100"\ncount = 4\npower_limit = "300 W"\n'
        'graph = [["*", "*", "NV1"]]\n'
        '[ceilings.gemm-fp32]\ncompute = "9.3 TFLOP/s"\ntag = "declared"\nsource = "sheet"\n',
        "platforms/p.toml",
    )
    platform = load_platform("p")
    assert platform.network is not None
    assert platform.network.bandwidth == 12.5e9
    assert platform.accelerators is not None
    assert platform.accelerators[0].power_limit == 300
    assert len(platform.accelerators[0].links()) == 6
    assert platform.ceilings["gemm-fp32"].compute == 9.3e12
