"""What people bring from other programs is understood, or answered with what does the same here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.read import run_directories
from harness.errors import RunError, nearest
from tests import needs, runs
from tests.cli.command import bakeoff


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run", "quickstart", "--trials", "3"), "Use --set measure.trials=N."),
        (("run", "quickstart", "--dry-run"), "Use bakeoff plan STUDY, which touches nothing."),
        (("plan", "quickstart", "--framework=torch"), "Use --only framework=NAME."),
        (("export", "latest", "-o", "table.tex"), "Use --output FILE, of report, export and "),
        (("show", "latest", "--format", "csv"), "Use --json, or bakeoff export RUN --to FORMAT."),
        (("run", "quickstart", "-n", "3"), "Use --set measure.trials=N."),
        (
            ("run", "quickstart", "--device", "cuda"),
            "Use --only device=gpu, or --set matrix.device",
        ),
        (("run", "quickstart", "--collect-only"), "Use bakeoff plan STUDY, which touches nothing."),
        (("run", "quickstart", "--lf"), "Use bakeoff resume RUN --retry-failed."),
        (("show", "latest", "-o", "json"), "collect, or --json."),
        (("show", "latest", "--output", "t.md"), "Use --json, or bakeoff export RUN --to FORMAT"),
        (("show", "latest", "--export-markdown", "t.md"), "Use bakeoff export RUN --to markdown."),
        (("run", "quickstart", "--min-runs", "3"), "Use --set measure.trials=N."),
        (("run", "quickstart", "--seed", "3"), "Use --set measure.seed=N."),
        (("run", "quickstart", "-P", "batch", "8", "16"), "Use a list: --set 'matrix.batch=[8, 1"),
        (("run", "-f", "quickstart"), "Use the file alone: bakeoff run FILE."),
        (("compare", "one", "--threshold", "5%"), 'Use --fail-if "slower > 3 %", of bakeoff comp'),
    ],
)
def test_an_option_of_other_programs_is_answered_with_ours(words, hint, tmp_path):
    ended = bakeoff(*words, cwd=tmp_path)
    assert ended.returncode == 2
    option = next(word for word in words if word.startswith("-")).partition("=")[0]
    assert f"No such option '{option}'" in ended.stderr
    assert hint in ended.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("status",), "Give latest, or a name that `bakeoff list runs` prints."),
        (("show",), "Give latest, or a name that `bakeoff list runs` prints."),
        (("plan",), "Give a .toml file, or a name that `bakeoff list studies` prints."),
    ],
)
def test_what_is_missing_is_said_with_where_to_find_one(words, hint, tmp_path):
    ended = bakeoff(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert hint in ended.stderr


@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("get", "Use bakeoff list runs, or bakeoff status RUN."),
        ("describe", "Use bakeoff show RUN, or bakeoff status RUN."),
        ("delete", "Use rm -r runs/NAME, as all of a run lies in its folder."),
        ("apply", "Use bakeoff run STUDY."),
        ("logs", "Use bakeoff watch RUN; what ranks printed is in RUN/cells/"),
    ],
)
def test_a_verb_of_other_programs_is_answered_with_ours(verb, hint, tmp_path):
    ended = bakeoff(verb, "runs", cwd=tmp_path)
    assert ended.returncode == 2
    assert f"There is no command '{verb}'. {hint}" in ended.stderr


def test_an_option_that_nobody_has_gets_no_hint(tmp_path):
    assert "Use " not in bakeoff("show", "latest", "--purple", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("cuda", ("cpu", "gpu"), "gpu"),
        ("float16", ("fp32", "bf16", "fp16"), "fp16"),
        ("BFloat16", ("fp32", "bf16"), "bf16"),
    ],
)
def test_words_of_other_programs_are_known(word, known, meant):
    assert nearest(word, known) == f" Did you mean '{meant}'?"


def test_the_beginning_of_one_name_alone_is_enough():
    assert nearest("slurm", ("pbs-cluster", "slurm-cluster")) == " Did you mean 'slurm-cluster'?"
    assert nearest("knl", ("knl-7210-cache", "knl-7250-flat")) == ""


def test_what_is_not_offered_is_not_suggested():
    assert "gpu" not in nearest("cuda", ("cpu",))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two runs under runs/, the second begun first."""
    made = [
        runs.write_run(tmp_path / name, [runs.RecordedCell()]).rename(tmp_path / f"runs-{name}")
        for name in ("one", "two")
    ]
    (tmp_path / "runs").mkdir()
    placed = [run.rename(tmp_path / "runs" / run.name) for run in made]
    for age, run in enumerate(placed):
        told = json.loads((run / "run.json").read_text(encoding="utf-8"))
        told["started_wall_ns"] -= age
        (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return placed


def test_latest_is_the_run_begun_last_whatever_was_written_since(two: list[Path]):
    (two[1] / "report.html").write_text("a page of the older one", encoding="utf-8")
    (found,) = run_directories(["latest"])
    assert found.resolve() == two[0].resolve()


def test_a_copy_of_an_older_run_is_not_the_latest(two: list[Path]):
    os.utime(two[1] / "run.json", (2_000_000_000, 2_000_000_000))
    os.utime(two[0] / "run.json", (1_000_000_000, 1_000_000_000))
    (found,) = run_directories(["latest"])
    assert found.resolve() == two[0].resolve()


def test_runs_in_the_folder_of_a_verb_are_found_as_others_are(two: list[Path]):
    folder = two[0].with_name("screen-2026-11-25")
    folder.mkdir()
    two[0].rename(folder / "screen")
    (found,) = run_directories(["latest"])
    assert found == Path("runs/screen-2026-11-25/screen")
    listed = json.loads(bakeoff("list", "runs", "--json", cwd=two[0].parents[1]).stdout)
    assert [one["name"] for one in listed] == ["runs-two", "screen-2026-11-25/screen"]


def test_a_run_that_is_called_latest_is_meant_by_its_name(two: list[Path]):
    two[1].rename(two[1].with_name("latest"))
    (found,) = run_directories(["latest"])
    assert found.name == "latest"


def test_where_there_is_no_run_latest_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=r"none lies in runs/ here\. To make one: bakeoff run"):
        run_directories(["latest"])


@pytest.mark.parametrize("planted", ["a link to nothing", "a pipe"])
def test_latest_passes_over_what_only_looks_like_a_run(two: list[Path], planted: str):
    place = two[0].with_name("newest")
    place.mkdir()
    if planted == "a pipe":
        os.mkfifo(place / "run.json")
    else:
        (place / "run.json").symlink_to(place / "nothing")
    (found,) = run_directories(["latest"])
    assert found.resolve() == two[0].resolve()


@pytest.mark.parametrize("name", ["latest", "runs"])
def test_a_run_that_may_not_be_looked_into_hides_no_other(two: list[Path], name: str):
    argv = [sys.executable, "-m", "harness.cli", "show", name]
    if os.geteuid() == 0:  # who may look into everything
        without = "-dac_override,-dac_read_search"
        setpriv = needs.program("setpriv", package="util-linux")
        argv = [setpriv, "--bounding-set", without, "--inh-caps", without, *argv]
    two[0].chmod(0)
    shown = subprocess.run(argv, capture_output=True, text=True, check=False)
    two[0].chmod(0o755)
    assert shown.returncode == 0, shown.stderr
    assert "tinycnn" in shown.stdout
