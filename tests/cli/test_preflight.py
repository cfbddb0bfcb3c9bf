"""See what would stop a study said at once, where no queue is asked."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from bakeoff import load
from tests.cli.command import bakeoff
from tests.needs import framework
from tests.runs import RecordedCell, Recording, write_run

STUDY = """
title = "Small"
[matrix]
workload = "tinycnn"
framework = "null"
[[include]]
workload = "read-traces"
framework = "null"
samples = 64
[[include]]
workload = "tinycnn"
framework = "singa"
"""
READING = """
[[include]]
workload = "read-traces"
framework = "null"
samples = 64
[[include]]
workload = "read-traces"
framework = "null"
samples = 2_000_000_000
"""
CLAIM = """
title = "Not this machine"
nodes = 1
[node]
cores = 4096
[frameworks.singa]
interpreter = "/no/such/python"
"""


def test_a_module_that_does_not_load_is_said_with_how_to_find_one_that_does(tmp_path: Path) -> None:
    init = tmp_path / "modules" / "init"
    init.mkdir(parents=True)
    (init / "bash").write_text("module() { echo \"Unable to locate\n  '$2'\" >&2; return 1; }\n")
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    (tmp_path / "platforms").mkdir()
    claim = 'title = "M"\n[frameworks.singa]\nmodules = ["singa/4.2"]\n'
    (tmp_path / "platforms" / "mine.toml").write_text(claim, "utf-8")
    words = ("preflight", "study.toml", "--platform", "mine", "--json")
    told = bakeoff(*words, cwd=tmp_path, MODULESHOME=str(init.parent), LMOD_PKG="")
    (found,) = (
        one for one in json.loads(told.stdout)["findings"] if one["check"] == "environment singa"
    )
    assert found["seen"] == "`module load singa/4.2` failed: Unable to locate 'singa/4.2'"
    assert found["remedy"] == (
        "`module avail singa` shows what there is; mend frameworks.singa.modules in mine."
    )


def test_all_that_is_missing_is_said_together_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.toml").write_text(CLAIM, "utf-8")
    home = tmp_path / "home"
    words = ("preflight", "study.toml", "--platform", "mine", "--json")
    told = bakeoff(*words, cwd=tmp_path, BAKEOFF_HOME=str(home))
    assert told.returncode == 1
    report = json.loads(told.stdout)
    assert report["ready"] is False
    levels = {one["check"]: (one["level"], one["seen"]) for one in report["findings"]}
    assert levels["environment null"][0] == "fine"
    assert levels["environment singa"][0] == "fault"
    assert levels["data set traces-raw-64"][0] == "fault"
    assert levels["node.cores"][0] == "warning"
    assert not home.exists()
    assert not (tmp_path / "runs").exists()


def test_a_study_that_nothing_stops_is_said_to_be_ready(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.partition("[[include]]")[0], "utf-8")
    told = bakeoff("preflight", "study.toml", cwd=tmp_path)
    assert told.returncode == 0, told.stdout
    assert "Nothing stops study on local." in told.stdout


@pytest.mark.framework
def test_a_cpu_build_is_a_fault_where_cells_take_gpus(tmp_path: Path) -> None:
    framework("torch")
    gpus = '[[accelerators]]\nmodel = "A100"\ncount = 1\n'
    (tmp_path / "there.toml").write_text(f'title = "x"\nextends = "slurm-cluster"\n{gpus}', "utf-8")
    matrix = '[matrix]\nworkload = "tinycnn"\nframework = "torch"\ndevice = ["cpu"{}]\n'
    for more, level in (("", "fine"), (', "gpu"', "fault")):
        (tmp_path / "study.toml").write_text('title = "x"\n' + matrix.format(more), "utf-8")
        words = ("preflight", "study.toml", "--platform", "there.toml", "--json")
        found = json.loads(bakeoff(*words, cwd=tmp_path).stdout)["findings"]
        (torch,) = (one for one in found if one["check"] == "environment torch")
        assert torch["level"] == level
    assert torch["seen"].endswith("cpu build), and cells take GPUs")
    assert torch["remedy"] == "bakeoff env create torch --device gpu"


def test_an_interpreter_that_cannot_import_its_framework_is_named(tmp_path: Path) -> None:
    claim = f'title = "x"\n[frameworks.torch]\ninterpreter = "{sys.executable}"\n'
    (tmp_path / "there.toml").write_text(claim, "utf-8")
    study = STUDY.partition("[[include]]")[0].replace("null", "torch")
    (tmp_path / "study.toml").write_text(study, "utf-8")
    told = bakeoff("preflight", "study.toml", "--platform", "there.toml", "--json", cwd=tmp_path)
    (torch,) = (one for one in json.loads(told.stdout)["findings"] if "torch" in one["check"])
    assert torch["seen"] == f"{sys.executable}: ModuleNotFoundError: No module named 'torch'"


def test_where_nothing_starts_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    study = ("wang2018", "--size", "smoke", "--platform", "simulated-cluster")
    told = bakeoff("preflight", *study, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "simulated: nothing starts anywhere" in told.stdout


def test_a_set_for_which_there_is_no_room_is_no_mere_command_away(tmp_path: Path) -> None:
    more = STUDY.partition("[[include]]")[0] + READING
    (tmp_path / "study.toml").write_text(more, "utf-8")
    told = bakeoff("preflight", "study.toml", cwd=tmp_path, BAKEOFF_HOME=str(tmp_path / "home"))
    assert told.returncode == 1
    assert "are free" in told.stdout


@pytest.mark.framework
@pytest.mark.parametrize(
    ("gres", "seen"), [("gpu:4", None), ("gpu:1", "jobs ask for 1"), ("", "jobs ask for none")]
)
def test_jobs_have_to_ask_for_the_gpus_that_cells_take(
    tmp_path: Path, gres: str, seen: str | None
) -> None:
    framework("torch")
    for name, line in (("sinfo", "echo 'all*|up|infinite|0/3|gpu:4'"), ("sbatch", ":")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    claim = f'title = "x"\nextends = "slurm-cluster"\n[launcher.settings]\ngres = "{gres}"\n'
    (tmp_path / "there.toml").write_text(claim)
    study = 'framework = "torch"\nstrategy = "ddp"\nranks_per_node = 4\ndevice = "gpu"\n'
    (tmp_path / "study.toml").write_text(f'title = "x"\n[matrix]\nworkload = "tinycnn"\n{study}')
    words = ("preflight", "study.toml", "--platform", "there.toml", "--json")
    told = bakeoff(*words, cwd=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    (gpus,) = (one for one in json.loads(told.stdout)["findings"] if one["check"] == "GPUs")
    assert gpus["level"] == ("fine" if seen is None else "fault")
    assert (seen or "cells take at most 4") in gpus["seen"]


PICKY = """for script; do :; done
asks() { grep -q -- "^#SBATCH --$1" "$script"; }
refuse() { echo "sbatch: error: $1" >&2; exit 1; }
asks account=ab12 || refuse 'You must specify an account'
asks constraint=gpu || refuse 'Job request does not match any supported policy'
asks qos=debug && refuse 'Invalid qos specification'
exit 0"""
"""A centre that takes no job without an account and a constraint, and has no QOS called so."""


@pytest.mark.parametrize(("qos", "faults"), [("", []), ("debug", ["qos debug"])])
def test_a_setting_without_which_no_job_is_taken_is_not_blamed_on_others(
    tmp_path: Path, qos: str, faults: list[str]
) -> None:
    for name, line in (("sinfo", "echo 'all*|up|infinite|0/3|(null)'"), ("sbatch", PICKY)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    claim = 'title = "x"\nextends = "slurm-cluster"\n[launcher.settings]\naccount = "ab12"\n'
    (tmp_path / "there.toml").write_text(f'{claim}constraint = "gpu"\nqos = "{qos}"\n')
    (tmp_path / "study.toml").write_text(STUDY.partition("[[include]]")[0])
    words = ("preflight", "study.toml", "--platform", "there.toml", "--json")
    told = bakeoff(*words, cwd=tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    found = json.loads(told.stdout)["findings"]
    assert [one["check"] for one in found if one["level"] == "fault"] == faults


def test_the_network_is_held_to_what_was_measured_of_it_last(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'title = "x"\n[matrix]\nworkload = "tinycnn"\nframework = "null"\n'
        'strategy = "ddp"\nnodes = 2\n'
    )

    def told(claim: str) -> dict[str, str]:
        lines = f'[network]\nfabric = "HDR"\nbandwidth = "{claim}"\nadapters = 2\n'
        (tmp_path / "there.toml").write_text(f'title = "x"\nextends = "slurm-cluster"\n{lines}')
        words = ("preflight", "study.toml", "--platform", "there.toml", "--json")
        found = json.loads(bakeoff(*words, cwd=tmp_path).stdout)["findings"]
        (network,) = (one for one in found if one["check"] == "network")
        return dict(network)

    never = told("1 kB/s")
    assert (never["level"], never["remedy"].partition(":")[0]) == (
        "unknown",
        "bakeoff run network-check --platform there",
    )
    factors = {"nodes": 2, "message_bytes": 64 << 20, "strategy": "ddp"}
    cell = RecordedCell("all-reduce", factors=factors, unit="bytes", parameters=None, macs=None)
    write_run(tmp_path / "runs", (cell,), Recording(platform={"name": "there", "title": "x"}))
    reached = load_rate(tmp_path / "runs" / Recording.name)
    fine = told(f"{reached / 2:.0f} B/s")
    assert (fine["level"], fine["seen"][:3]) == ("fine", "100")
    assert "all-reduce of 64 MiB on 2 nodes" in fine["seen"]
    assert told(f"{3 * reached:.0f} B/s")["level"] == "warning"


def load_rate(run: Path) -> float:
    (cell,) = load(run).cells
    assert cell.rate is not None
    return cell.rate.value
