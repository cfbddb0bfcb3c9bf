"""Hold each engine's command to its accepted form, and enter the one that runs here."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness import commands
from harness.agent.protocol import RankCommand
from harness.errors import UsageError
from harness.launch.binding import Share
from harness.launch.container.command import box_of
from harness.launch.container.engines import enter, private_words
from harness.launch.container.room import Room, parse_bind, room_env, with_host_mpi
from harness.launch.launchers.local import launch
from harness.launch.numactl import MemoryPolicy
from harness.machine.topology import Core, MemoryNode, Topology
from harness.platform.platform import Platform
from harness.platform.starting import Binding, Container, FrameworkThere, Launcher
from harness.ranks import rank_environment
from harness.study.framework_variables import Variables
from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.cli.command import bakeoff
from tests.launch.test_local import PLATFORM, on
from tests.needs import program

ROOM = Room(
    cwd="/runs/one/cells/9f3a/trial-1",
    env={"BAKEOFF_RANK": "0", "PYTHONPATH": "/runs/one/payload"},
    readable=("/runs/one/payload",),
    writable=("/runs/one/cells/9f3a/trial-1",),
    gpus=(0, 1),
    cpus=(4, 5),
    binds=(("/scratch", "/data", False),),
)
ENGINES = ("apptainer", "singularity", "docker", "podman", "charliecloud", "bwrap", "pyxis")
ANY = MemoryPolicy()
PYTHON = str(Path(sys.executable).resolve())

JOB = Job(
    purpose="trial",
    cell_key="9f3a",
    trial="trial-1",
    workload="nothing",
    workload_module="workloads.nothing",
    framework="null",
    adapter_module="harness.worker.adapters.null",
    environment="null",
    strategy="none",
    scale=Scale(),
    factors={"container": True},
    options={},
    warmup=Span(steps=1),
    until=Span(steps=1),
    seed=1,
    directory="/runs/one/cells/9f3a/trial-1",
)


def share(memory: MemoryPolicy = ANY) -> Share:
    return Share((0,), ((0,),), 1, memory, (), pinned=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engines_command_is_as_accepted(engine: str, golden) -> None:
    container = Container.model_construct(engine=engine, image="image")
    argv = enter(container, ROOM, ("python3", "-m", "harness.worker", "job.json"))
    golden(f"launch/container-{engine}.txt", "\n".join(argv) + "\n")


def test_pyxis_belongs_to_srun_and_takes_no_memory_policy() -> None:
    there = FrameworkThere(container=Container(engine="pyxis", image="i"))
    local = Platform.model_construct(
        name="p", environment={}, frameworks={"null": there}, launcher=Launcher()
    )
    with pytest.raises(UsageError, match="its launcher must be slurm"):
        box_of(local, JOB, "/payload")
    box = box_of(local.model_copy(update={"launcher": Launcher(name="slurm")}), JOB, "/payload")
    assert box is not None
    rank = RankCommand(0, ("python3", "-m", "x"), {}, JOB.directory, (0,), node=1)
    with pytest.raises(UsageError, match="does not reach into pyxis"):
        box.wrap(rank, share(MemoryPolicy(("--preferred=1",))))
    assert "--relative=1" in box.wrap(rank, share()).argv


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_of_several_nodes_reach_the_network_and_ranks_of_one_do_not(engine: str) -> None:
    container = Container.model_construct(engine=engine, image="image")
    alone = " ".join(enter(container, ROOM, ()))
    many = " ".join(enter(container, replace(ROOM, network=True), ()))
    closed = ("--network none", "--network=none", "--unshare-net")
    assert engine in ("charliecloud", "pyxis") or any(flag in alone for flag in closed)
    assert not any(flag in many for flag in closed)


@pytest.mark.parametrize("scale", [Scale(ranks_per_node=2), Scale(nodes=2), Scale()], ids=str)
@pytest.mark.parametrize("engine", [one for one in ENGINES if one != "pyxis"])
def test_ranks_reach_each_other_wherever_they_are_and_a_lone_one_nobody(
    engine: str, scale: Scale
) -> None:
    there = FrameworkThere.model_validate({"container": {"engine": engine, "image": "i"}})
    platform = Platform.model_construct(
        name="p", environment={}, frameworks={"null": there}, launcher=Launcher(name="local")
    )
    box = box_of(platform, replace(JOB, scale=scale), "/payload")
    assert box is not None
    words = " ".join(box.wrap(RankCommand(0, ("py",), {}, JOB.directory, (0,)), share()).argv)
    is_closed = any(one in words for one in ("--network none", "--network=none", "--unshare-net"))
    assert is_closed is (scale.ranks == 1 and engine != "charliecloud")


def test_the_hosts_mpi_comes_with_its_folder_and_the_paths_that_find_it() -> None:
    room = with_host_mpi(replace(ROOM, env={"LD_LIBRARY_PATH": "/own"}), "/opt/openmpi")
    assert room.env["LD_LIBRARY_PATH"] == "/opt/openmpi/lib:/own"
    assert room.env["PATH"] == "/opt/openmpi/bin"
    assert ("/opt/openmpi", "/opt/openmpi", False) in room.mounts


@pytest.mark.parametrize("text", ["data", "/a:b", "/a:/b:rx", "/a:/b:rw:z"])
def test_a_bind_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no bind|a bind is ro or rw"):
        parse_bind(text)


def test_binds_are_written_as_every_engine_writes_them() -> None:
    assert parse_bind("/a") == ("/a", "/a", False)
    assert parse_bind("/a:/b") == ("/a", "/b", False)
    assert parse_bind("/a:/b:rw") == ("/a", "/b", True)


def test_ranks_inside_write_no_byte_code_into_the_payload_either(tmp_path: Path) -> None:
    inside = room_env(rank_environment.environment({}, tmp_path, {}, None), {}, Variables())
    assert inside["PYTHONDONTWRITEBYTECODE"] == "1"


def test_only_what_bakeoff_and_the_platform_set_goes_inside() -> None:
    host = {"HOME": "/home/ada", "SECRET": "x", "BAKEOFF_RANK": "1", "OMP_NUM_THREADS": "2"}
    assert room_env(host, {"NCCL_DEBUG": "INFO"}, Variables()) == {
        "BAKEOFF_RANK": "1",
        "OMP_NUM_THREADS": "2",
        "NCCL_DEBUG": "INFO",
    }


def test_horovod_is_entered_where_it_was_built() -> None:
    image = {"torch": "plain", "torch@horovod": "with Horovod"}
    there = {
        name: FrameworkThere(container=Container(engine="bwrap", image=text, interpreter="py"))
        for name, text in image.items()
    }
    platform = Platform.model_construct(name="p", environment={}, frameworks=there)
    rank = RankCommand(0, ("py", "-m", "harness.worker", "j.json"), {}, JOB.directory, (0,))
    for environment, wanted in (("torch[jpeg]", "plain"), ("torch@horovod", "with Horovod")):
        box = box_of(platform, replace(JOB, environment=environment), "/payload")
        assert box is not None
        assert wanted in box.wrap(rank, share()).argv


def test_a_rank_keeps_its_memory_policy_outside_and_finds_its_folders_inside() -> None:
    there = FrameworkThere(container=Container(engine="bwrap", image="/", interpreter="py"))
    platform = PLATFORM.model_copy(
        update={"frameworks": {"null": there}, "binding": Binding(memory="fast-first")}
    )
    worker = on(Topology((Core((0,)),), (MemoryNode(0, frozenset({0}), "HBM"),)))
    reads = replace(JOB, paths={"data": "/disk/set"})
    (boxed,) = launch("j.json", reads, platform, worker).ranks
    assert boxed.argv[:4] == ("numactl", "--preferred=0", "--", "bwrap")
    assert boxed.argv[-5:] == ("--", "py", "-m", "harness.worker", "j.json")
    assert "--ro-bind /disk/set /disk/set" in " ".join(boxed.argv)
    makes = replace(JOB, paths={"given": "/gate/given", "made": "/gate/made"})
    (boxed,) = launch("j.json", makes, platform, worker).ranks
    assert "--bind /gate /gate" in " ".join(boxed.argv)  # where what it makes is to lie
    bare = replace(JOB, factors={**JOB.factors, "container": False})
    (rank,) = launch("j.json", bare, platform, worker).ranks
    assert rank.argv[3:] == (*worker.argv, "-m", "harness.worker", "j.json")


_LOOK = """
import json, os, socket
def writes(path):
    try:
        open(os.path.join(path, "x"), "w").close()
        return True
    except OSError:
        return False
print(json.dumps({
    "cwd": os.getcwd(), "env": dict(os.environ), "network": [n for _, n in socket.if_nameindex()],
    "cpus": sorted(os.sched_getaffinity(0)), "payload": writes(os.environ["PYTHONPATH"]),
    "own": writes("."), "root": writes("/"),
}))
"""


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        ("docker", "HF_TOKEN"),
        ("podman", "HF_TOKEN"),
        ("pyxis", "HF_TOKEN"),
        ("apptainer", "APPTAINERENV_HF_TOKEN"),
        ("singularity", "SINGULARITYENV_HF_TOKEN"),
        ("bwrap", ""),
        ("charliecloud", ""),
    ],
)
def test_what_a_platform_states_is_not_shown_in_a_command_line(engine: str, name: str) -> None:
    there = FrameworkThere.model_validate(
        {
            "container": {"engine": engine, "image": "i"},
            "environment": {"HF_TOKEN": "hf_secret", "PATH": "/inside", "HOME": "/root"},
        }
    )
    slurm = Launcher(name="slurm")
    platform = Platform.model_construct(
        name="p", environment={}, frameworks={"null": there}, launcher=slurm
    )
    box = box_of(platform, JOB, "/payload")
    assert box is not None
    outside = {"PATH": "/usr/bin", "HOME": "/home/ada"}
    rank = box.wrap(RankCommand(0, ("py",), outside, JOB.directory, (0,)), share())
    assert "hf_secret" not in " ".join(rank.argv)
    handed = {name: "hf_secret"} if name else {}
    assert rank.env == {**outside, **handed}, "and nothing that steers the engine itself"
    assert ("hf_secret" in rank.private) is not bool(name)
    words = (
        " ".join(rank.argv).replace("--setenv PATH ", "PATH=").replace("--setenv HOME ", "HOME=")
    )
    assert "PATH=/inside" in words
    assert "HOME=/root" in words
    if engine in ("docker", "podman"):
        assert "--env=HF_TOKEN" in rank.argv


@pytest.mark.engine
def test_inside_is_what_was_given_and_nothing_else(tmp_path: Path) -> None:
    program("bwrap", package="bubblewrap")
    payload, own = tmp_path / "payload", tmp_path / "trial"
    payload.mkdir()
    own.mkdir()
    stated = {"HF_TOKEN": "hf_secret", "LINES": "one\ntwo = $HOME 'x'"}
    room = Room(
        cwd=str(own),
        env={"BAKEOFF_RANK": "0", "PYTHONPATH": str(payload), **stated},
        stated=tuple(stated),
        readable=(str(payload),),
        writable=(str(own),),
    )
    bwrap = Container(engine="bwrap", image="/")
    argv = enter(bwrap, room, (PYTHON, "-c", _LOOK))
    assert "hf_secret" not in " ".join(argv)
    answer = commands.run(argv, timeout_s=60, private=private_words(bwrap, room))
    told = json.loads(answer.required())
    assert {name: told["env"].pop(name) for name in stated} == stated
    assert told["cwd"] == str(own)
    assert (
        {"BAKEOFF_RANK", "PYTHONPATH"}
        <= set(told["env"])
        <= {*("BAKEOFF_RANK", "PYTHONPATH", "PWD", "LC_CTYPE")}
    )
    assert told["network"] == ["lo"]
    assert told["cpus"] == sorted(os.sched_getaffinity(0)), "affinity is inherited"
    assert (told["payload"], told["own"], told["root"]) == (False, True, False)


@pytest.mark.engine
def test_charliecloud_hands_private_variables_on_as_they_are(tmp_path: Path) -> None:
    program("ch-run", package="charliecloud-runtime")
    for name in ("dev", "proc", "sys", "tmp", "etc", "usr"):
        (tmp_path / name).mkdir()
    for name in ("etc/hosts", "etc/resolv.conf"):
        (tmp_path / name).touch()
    for link in map(Path, ("/bin", "/lib", "/lib64")):
        if link.is_symlink():
            (tmp_path / link.name).symlink_to(link.readlink())
    stated = {"HF_TOKEN": "a$HOME:$USER 'b' c=d", "QUOTED": "'e'"}
    binds = (("/usr", "/usr", False),)
    room = Room(cwd="/", env=stated, stated=tuple(stated), binds=binds)
    box = Container.model_construct(engine="charliecloud", image=str(tmp_path))
    argv = enter(box, room, ("/usr/bin/env", "-0"))
    answer = commands.run(argv, timeout_s=60, private=private_words(box, room))
    told = dict(one.split("=", 1) for one in answer.required().split("\0") if one)
    assert {name: told[name] for name in stated} == stated
    with pytest.raises(UsageError, match="HF_TOKEN has several lines"):
        private_words(box, replace(room, env={"HF_TOKEN": "a\nb"}))


@pytest.mark.engine
def test_a_study_compares_a_container_with_bare_metal(tmp_path: Path) -> None:
    program("bwrap", package="bubblewrap")
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "boxed.toml").write_text(
        'title = "boxed"\nas_found = true\n[frameworks.null.container]\n'
        f'engine = "bwrap"\nimage = "/"\ninterpreter = "{PYTHON}"\n'
    )
    (tmp_path / "study.toml").write_text(
        'title = "Boxed or bare"\n[matrix]\nworkload = "tinycnn"\nframework = "null"\n'
        'container = [false, true]\n[measure]\ntrials = 1\nwarmup = "3 steps"\nuntil = "50 ms"\n'
        'tolerate = ["contended", "throttled", "stalled"]\nreference = { container = false }\n'
    )
    ran = bakeoff("run", "study.toml", "--platform", "boxed", "--name", "one", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    outcomes = sorted((tmp_path / "runs" / "one").glob("cells/*/trial-1/outcome.json"))
    assert [json.loads(one.read_text())["outcome"] for one in outcomes] == ["ok", "ok"]
    for one in outcomes:
        (rank,) = json.loads(one.read_text())["ranks"]
        own = one.with_name("events.0.jsonl").read_text().splitlines()
        facts = next(event["facts"] for event in map(json.loads, own) if event["event"] == "facts")
        assert rank["cpu_s"] >= facts["cpu_s"], "the worker's, not only its box's"
        assert rank["max_rss_bytes"] >= 0.9 * facts["peak_rss_bytes"]


@pytest.mark.engine
def test_a_framework_that_a_platform_has_only_in_a_container_runs_there(tmp_path: Path) -> None:
    program("bwrap", package="bubblewrap")
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "boxed.toml").write_text(
        'title = "boxed"\nas_found = true\n[frameworks.null.container]\n'
        'engine = "bwrap"\nimage = "/"\ninterpreter = "/no/such/python"\n'
    )
    (tmp_path / "study.toml").write_text(
        'title = "Boxed"\n[matrix]\nworkload = "tinycnn"\nframework = "null"\ncontainer = true\n'
        '[measure]\ntrials = 1\nwarmup = "3 steps"\nuntil = "50 ms"\n'
    )
    ran = bakeoff("run", "study.toml", "--platform", "boxed", "--name", "one", cwd=tmp_path)
    assert ran.returncode == 1
    errors = next((tmp_path / "runs" / "one").glob("cells/*/trial-1/*err*"))
    assert "bwrap: execvp /no/such/python" in errors.read_text()
