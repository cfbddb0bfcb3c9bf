"""What leaves a machine does not say where that machine keeps things; what stays there does."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import bakeoff
from harness.analysis.context.absolute_paths import without_place
from harness.cli.verbs.compare import command as compare
from harness.cli.verbs.export import command as export
from harness.cli.verbs.report import command as report
from harness.cli.verbs.show import command as show
from harness.cli.verbs.sql import command as sql
from tests import runs

TABLES = ("ranking", "cells", "trials", "failures", "holes", "runs", "differences", "machines")
NEEDS_A_PROGRAM = ("pdf", "png")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "users" / "ada"
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def run(tmp_path: Path, home: Path) -> Path:
    """A run whose every record names places of this machine."""
    told = runs.Recording(
        holes=({"label": "tinycnn · caffe", "why": f"no caffe in {home}/caffe"},),
        platform={"name": "x", "title": "A laptop", "storage": [{"path": f"{tmp_path}/fast/here"}]},
        versions={"torch": "2.13.0", "blas": f"{tmp_path}/lib/libblas.so"},
    )
    cells = [
        runs.RecordedCell(),
        runs.RecordedCell(framework="jax", outcomes=dict.fromkeys(range(1, 7), "failed")),
    ]
    made = runs.write_run(tmp_path / "my runs", cells, told)
    _add(
        made / "provenance.json",
        command=[f"{home}/bakeoff/bin/bakeoff", "run"],
        environment={"PATH": f"{home}/bin:/usr/bin", "PWD": str(tmp_path), "OMP_PLACES": str(home)},
    )
    _add(made / "environments" / "torch-cpu.json", argv=[f"{home}/.cache/env/bin/python"])
    return made


def _add(file: Path, **fields: object) -> None:
    held = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(held | fields), encoding="utf-8")


def _invoke(verb: object, *words: object) -> Result:
    done = CliRunner().invoke(verb, list(map(str, words)), catch_exceptions=False)  # type: ignore[arg-type]
    assert done.exit_code == 0, done.output
    return done


def _formats() -> list[str]:
    (form,) = (one for one in export.params if one.name == "form")
    without = () if importlib.util.find_spec("perfetto") else ("perfetto",)
    return [one for one in form.type.choices if one not in (*NEEDS_A_PROGRAM, *without)]  # type: ignore[attr-defined]


def _assert_stays(text: str, *places: Path) -> None:
    assert [place for place in map(str, places) if place in text] == []


@pytest.mark.parametrize("form", _formats())
def test_no_export_says_where_its_run_or_its_user_lives(
    form: str, run: Path, tmp_path: Path, home: Path
) -> None:
    written = tmp_path / "written"
    _invoke(export, run, "--to", form, "--output", written)
    _assert_stays(written.read_bytes().decode(errors="replace"), tmp_path, home)


@pytest.mark.parametrize("name", TABLES)
def test_no_table_does(name: str, run: Path, tmp_path: Path, home: Path) -> None:
    two = runs.write_run(tmp_path, [runs.RecordedCell()], runs.Recording(name="two"))
    told = _invoke(export, run, two, "--to", "csv", "--table", name).stdout
    _assert_stays(told, tmp_path, home)


def test_neither_does_a_page_nor_the_data_beside_it(run: Path, tmp_path: Path, home: Path) -> None:
    _invoke(report, run)
    for name in ("report.html", "results.json"):
        _assert_stays((run / name).read_text(encoding="utf-8"), tmp_path, home)
    _assert_stays(_invoke(show, run, "--json").stdout, tmp_path, home)


def test_neither_does_a_comparison(tmp_path: Path, home: Path) -> None:
    cells = [runs.RecordedCell(), runs.RecordedCell(framework="jax", gate="differs")]
    both = [
        runs.write_run(home / "runs", cells, runs.Recording(name=name)) for name in ("one", "two")
    ]
    for gate in home.glob("runs/*/gate/*.json"):
        _add(gate, detail=f"as {home}/layers.npz holds it")
    page, summary = tmp_path / "compared.html", tmp_path / "summary.md"
    told = _invoke(compare, *both, "--json", "--github-summary", summary).stdout
    _invoke(report, *both, "--compare", "--output", page)
    for text in (told, summary.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")):
        assert "as ~/layers.npz holds it" in text
        _assert_stays(text, tmp_path, home)


def test_of_variables_only_those_leave_that_change_how_fast_frameworks_run(run: Path) -> None:
    (told,) = bakeoff.load(run).runs
    assert told.provenance["environment"] == {"OMP_PLACES": "~"}


def test_a_trial_is_found_from_the_folder_of_its_run(run: Path) -> None:
    loaded = bakeoff.load(run)
    places = [run.parent / trial.directory for cell in loaded.cells for trial in cell.trials]
    assert places
    assert all((place / "outcome.json").is_file() for place in places)


def test_queries_see_a_run_as_it_was_recorded(run: Path, home: Path) -> None:
    assert str(home) in _invoke(sql, run, "select provenance from runs", "--json").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no /scratch/ada/sets/train here", "no …/sets/train here"),
        ("/scratch/ada", "…/ada"),
        ("/home/ada/x.toml", "~/x.toml"),
        ("/usr/bin:/opt/cuda/lib64/stubs", "…/bin:…/lib64/stubs"),
        ("--dump=/a/b/c -I/a/b/c file:///a/b/c", "--dump=…/b/c -I…/b/c file://…/b/c"),
        ("781 images/s of /proc/cpuinfo", "781 images/s of /proc/cpuinfo"),
        ("https://example.org/a/b/c ../a/b/c", "https://example.org/a/b/c ../a/b/c"),
    ],
)
def test_absolute_paths_keep_their_last_two_names_at_most(text: str, said: str) -> None:
    assert without_place(text) == said
    assert without_place(said) == said
