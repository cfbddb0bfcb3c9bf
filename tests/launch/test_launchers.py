from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable

import pytest

from harness import plugins
from harness.errors import UsageError
from harness.launch.batch_script import Batch
from harness.launch.container.room import room_env
from harness.launch.contract import Node, Worker
from harness.launch.rendezvous import Seat, ports_needed, seats, variables
from harness.platform.platform import Platform
from harness.platform.starting import Launcher
from harness.study.framework import framework_info
from harness.worker.place import find
from harness.worker.scale import Scale
from tests.launch.test_local import PLATFORM, WORKER, job

Golden = Callable[[str, str], None]
HARNESS = ("/home/minna/bakeoff/bin/python", "-P", "-m", "harness.agent")
TWO = (
    Node((0, 1, 2), (7001, 7002, 7000), name="cn1", address="cn1"),
    Node((0, 1, 2), (8001, 8002, 8000), name="cn2", address="cn2"),
)
BATCH = Batch(
    argv=("/home/minna/bakeoff/bin/bakeoff", "resume", "/shared/runs/a study"),
    name="study",
    nodes=4,
    minutes=95,
    log="/shared/runs/a-study/queue.log",
)
SETTINGS = {
    "local": {},
    "ssh": {"hosts": "cn[1-2]", "command": "ssh -F my.conf"},
    "slurm": {"partition": "gpu", "account": "ab12", "constraint": "knl&flat", "options": "-q now"},
    "mpirun": {"hosts": "cn[1-2]"},
    "pbs": {"queue": "workq", "account": "ab12"},
    "lsf": {"queue": "batch", "project": "ab12"},
}


def platform(name: str, **settings: str) -> Platform:
    launcher = Launcher(name=name, settings=settings)
    return PLATFORM.model_copy(update={"launcher": launcher})


def on_two(ranks: int) -> tuple[Worker, object]:
    shim = ("/home/minna/bakeoff/bin/python", "-E", "-P", "-m", "harness.agent.shim")
    worker = dataclasses.replace(WORKER, nodes=TWO, shim=shim, door="/tmp/bakeoff-1f")
    return worker, dataclasses.replace(job(ranks), scale=Scale(nodes=2, ranks_per_node=ranks))


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_an_agent_is_reached_through_its_engine(name: str, golden: Golden):
    command = plugins.load("launchers", name).reach("cn2", HARNESS, SETTINGS[name])
    golden(f"launch/{name}-reach.txt", shlex.join(command) + "\n")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("slurm", {"mpi": "pmix"}),
        ("mpirun", {"mpi": "openmpi"}),
        ("mpirun", {"mpi": "mpich"}),
        ("mpirun", {"mpi": "intel", "command": "mpiexec.hydra -l"}),
        ("mpirun", {"mpi": "horovodrun"}),
    ],
)
def test_an_engine_starts_a_shim_for_each_rank(name: str, settings: dict[str, str], golden: Golden):
    worker, two = on_two(2)
    made = plugins.load("launchers", name).launch("j", two, platform(name, **settings), worker)
    assert made.door is not None
    assert made.starter is not None
    assert [(rank.rank, rank.node) for rank in made.ranks] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert not any(key.startswith("HOROVOD_") for rank in made.ranks for key in rank.env)
    golden(f"launch/{name}-{settings['mpi']}.txt", shlex.join(made.starter.argv) + "\n")


@pytest.mark.parametrize("name", ["slurm", "pbs", "lsf"])
def test_a_batch_script_asks_for_what_the_platform_says(name: str, golden: Golden):
    text = plugins.load("launchers", name).script(BATCH, SETTINGS[name])
    golden(f"launch/{name}-script.txt", text)


def test_lsf_asks_for_slots_of_whole_nodes_where_it_is_not_csm():
    lsf = plugins.load("launchers", "lsf")
    asked = lsf.script(BATCH, {"slots": "48"}).splitlines()
    assert {"#BSUB -n 192", "#BSUB -R 'span[ptile=48]'", "#BSUB -x"} <= set(asked)
    assert not any("-nnodes" in line for line in asked)
    environ = {"LSB_HOSTS": "a a b b"}
    assert lsf.nodes({"slots": "48"}, environ) == ("a", "b"), "none of them only launches"
    assert lsf.setting_fault("slots", "many") is not None


def test_what_pbs_asks_of_a_node_is_one_select():
    pbs = plugins.load("launchers", "pbs")
    assert "#PBS -l select=4:ngpus=2\n" in pbs.script(BATCH, {"chunk": "ngpus=2"})
    assert "'chunk'" in pbs.setting_fault("options", "-l select=2:ngpus=4")
    assert pbs.setting_fault("options", "-l filesystems=home") is None


@pytest.mark.parametrize("name", ["slurm", "pbs", "lsf"])
def test_no_value_of_a_batch_script_becomes_a_line_of_shell(name: str):
    launcher = plugins.load("launchers", name)
    own = next(iter(SETTINGS[name]))
    for settings in ({own: "gpu\nreboot"}, {"options": "-x\nreboot"}, {own: "gpu\rreboot"}):
        with pytest.raises(UsageError, match=r"batch script: .*reboot.* on one line"):
            launcher.script(BATCH, settings)
    for batch in (
        dataclasses.replace(BATCH, name="s\nreboot"),
        dataclasses.replace(BATCH, log="s\nreboot"),
    ):
        with pytest.raises(UsageError, match=r"batch script: .*reboot.* on one line"):
            launcher.script(batch, SETTINGS[name])


@pytest.mark.parametrize(
    ("name", "prefix"), [("slurm", "#SBATCH"), ("pbs", "#PBS"), ("lsf", "#BSUB")]
)
def test_no_word_of_a_command_becomes_a_directive(name: str, prefix: str):
    batch = dataclasses.replace(BATCH, argv=("sh", "-c", f"true\n{prefix} -q other"))
    with pytest.raises(UsageError, match=f"a line of {prefix}"):
        plugins.load("launchers", name).script(batch, {})


def test_what_is_idle_is_asked_of_the_partition_that_jobs_go_to():
    idle = plugins.load("launchers", "slurm").idle
    assert shlex.join(idle({})) == "sinfo --noheader --format=%A"
    assert idle({"partition": "gpu"})[-1] == "--partition=gpu"


SINFO = """\
debug*|up|30:00|3/13|(null)
gpu|up|2-00:00:00|60/4|gpu:a100:4(S:0-1)
gpu|up|2-00:00:00|0/2|gpu:2,shard:8
old|inact|infinite|0/0|(null)
sinfo: warning: a node is slow
"""


def test_what_partitions_offer_is_read_as_sinfo_prints_it():
    found = plugins.load("launchers", "slurm").read_partitions(SINFO)
    assert [(one.name, one.is_default, one.is_up) for one in found] == [
        ("debug", True, True),
        ("gpu", False, True),
        ("gpu", False, True),
        ("old", False, False),
    ]
    assert [one.limit_min for one in found] == [30, 2880, 2880, None]
    assert [(one.usable, one.idle, one.gpus) for one in found] == [
        (16, 13, 0),
        (64, 4, 4),
        (2, 2, 2),
        (0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, 0),
        ({"gres": "gpu:4"}, 4),
        ({"gres": "gpu"}, 1),
        ({"gres": "gpu:a100:2,shard:8"}, 2),
        ({"gres": "lustre"}, 0),
        ({"options": "--gpus-per-node=a100:4 --mem=0"}, 4),
        ({"options": "--gpus-per-node 2"}, 2),
        ({"options": "--gres=gpu:8"}, 8),
        ({"options": "--gpus=8"}, None),
        ({"options": "-G 8"}, None),
        ({"options": "--mem=0"}, 0),
    ],
)
def test_the_gpus_that_jobs_ask_slurm_for_are_counted(
    settings: dict[str, str], asked: int | None
) -> None:
    assert plugins.load("launchers", "slurm").gpus_asked(settings) == asked


def test_a_job_in_parts_is_an_array_whose_parts_run_one_after_another():
    launcher = plugins.load("launchers", "slurm")
    script = launcher.script(dataclasses.replace(BATCH, parts=3), {})
    assert "#SBATCH --array=1-3%1\n" in script
    assert launcher.part({"SLURM_ARRAY_TASK_ID": "2"}) == 2
    assert launcher.part({}) is None


@pytest.mark.parametrize("name", ["slurm", "pbs", "lsf"])
def test_a_value_with_blanks_and_signs_stays_one_word_of_its_directive(name: str):
    log = "/shared/my runs/a'b#c$(reboot)"
    text = plugins.load("launchers", name).script(dataclasses.replace(BATCH, log=log), {})
    (line,) = (line for line in text.splitlines() if "reboot" in line)
    assert shlex.split(line)[-1].removeprefix("--output=") == log


def told(framework: str, strategy: str, *, nodes: int = 2, has_mpi: bool = False) -> dict[str, str]:
    """Give what the last of two ranks a node, or a lone one, is told."""
    own = framework_info(framework).rank_variables(strategy, {}, has_mpi=has_mpi)
    if nodes == 0:
        return variables(Seat(0, 0, 0), TWO[:1], 1, own)
    return variables(Seat(2 * nodes - 1, nodes - 1, 1), TWO[:nodes], 2, own, threads=4)


@pytest.mark.parametrize(
    ("framework", "strategy"),
    [
        ("torch", "ddp"),
        ("torch", "horovod"),
        ("tensorflow", "multiworker"),
        ("tensorflow", "horovod"),
        ("jax", "data-parallel"),
        ("null", "ddp"),
    ],
)
def test_ranks_on_two_nodes_find_each_other_in_their_frameworks_words(
    framework: str, strategy: str, golden: Golden
):
    found = told(framework, strategy)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    golden(f"launch/meeting-{framework}-{strategy}.json", text)
    place = find(found, "cn2")
    assert (place.rank, place.size, place.local_rank, place.local_size) == (3, 4, 1, 2)


def test_what_torchrun_and_horovodrun_would_say_is_what_bakeoff_says():
    found = told("torch", "horovod")
    place = dataclasses.replace(find(found, "cn2"), launcher="")
    for family in ("BAKEOFF_", "HOROVOD_"):
        found = {k: v for k, v in found.items() if not k.startswith(family)}
        assert dataclasses.replace(find(found, "cn2"), launcher="") == place


def test_ranks_of_one_node_meet_on_its_loopback():
    assert told("torch", "horovod", nodes=1)["HOROVOD_GLOO_IFACE"] == "lo"
    assert "HOROVOD_GLOO_IFACE" not in told("torch", "horovod")


def test_a_lone_rank_is_told_of_nobody():
    assert "TF_CONFIG" not in told("tensorflow", "none", nodes=0)
    assert "WORLD_SIZE" not in told("torch", "none", nodes=0)
    assert told("torch", "none", nodes=0)["BAKEOFF_SIZE"] == "1"


def test_a_lone_rank_meets_over_gloo_as_many_do_unless_an_mpi_starts_it():
    controllers = [
        told("torch", "horovod", nodes=0, has_mpi=has_mpi).get("HOROVOD_CONTROLLER")
        for has_mpi in (False, True)
    ]
    assert controllers == ["gloo", None]


def test_seats_are_numbered_node_by_node():
    assert seats(2, 2)[2] == Seat(rank=2, node=1, local_rank=0)
    assert ports_needed(2) == len(TWO[0].ports)


def test_nodes_come_from_the_allocation():
    environ = {"SLURM_JOB_NODELIST": "cn[001-002],login1", "LSB_HOSTS": "batch1 a a b b"}
    load = plugins.load
    assert load("launchers", "slurm").nodes({}, environ) == ("cn001", "cn002", "login1")
    assert load("launchers", "lsf").nodes({}, environ) == ("a", "b")
    assert load("launchers", "pbs").nodes({}, {"BAKEOFF_HOSTS": "a b a"}) == ("a", "b")
    assert load("launchers", "mpirun").nodes({}, {}) == ("",)
    assert load("launchers", "mpirun").nodes({}, environ) == ("cn001", "cn002", "login1")
    for name in ("slurm", "pbs", "lsf", "ssh"):
        with pytest.raises(UsageError, match=name):
            load("launchers", name).nodes({}, {})


def test_a_container_keeps_what_leads_a_rank_to_the_others():
    for name in ("torch", "tensorflow", "jax"):
        found = told(name, "horovod")
        own = framework_info(name).rank_variables("horovod", {})
        assert room_env({**found, "HOME": "/home/ada"}, {}, own) == found


def test_devices_that_are_no_peers_exchange_another_way() -> None:
    def set_for(framework: str, strategy: str, **factors: object) -> dict[str, str]:
        own = framework_info(framework).rank_variables(strategy, factors)
        return variables(Seat(1, 0, 1), TWO[:1], 2, own)

    apart = set_for("torch", "ddp", peer=False, device="gpu")
    assert apart["NCCL_P2P_DISABLE"] == "1"
    assert "NCCL_P2P_DISABLE" not in set_for("torch", "ddp", peer=True, device="gpu")
    assert set_for("mpi", "mpi", peer=False, device="cpu")["OMPI_MCA_btl"] == "self,tcp"
