"""`init` asks nothing and writes a study that plans on this machine."""

from __future__ import annotations

import json

from harness.cli.verbs.init import command as init
from harness.study.first_study import Here, first_study
from harness.study.study import load_study
from tests.cli.command import bakeoff


def test_what_it_writes_is_a_study_that_can_be_planned(tmp_path):
    made = bakeoff("init", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "Next: bakeoff plan mine.toml" in made.stderr
    planned = bakeoff("plan", "mine.toml", "--json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["cells"]


def test_a_file_that_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.toml").write_text("mine")
    ended = bakeoff("init", "mine.toml", cwd=tmp_path)
    assert ended.returncode == 2
    assert "is there already, and is left as it is" in ended.stderr
    assert (tmp_path / "mine.toml").read_text() == "mine"


def test_a_place_that_is_none_is_one_message(tmp_path):
    assert "no such folder" in bakeoff("init", "nowhere/mine.toml", cwd=tmp_path).stderr
    assert "ends with .toml" in bakeoff("init", "mine", cwd=tmp_path).stderr


def test_the_reference_is_what_most_readers_know_where_it_is_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everything_study = "harness.gate.everything_study.ready_frameworks"
    for ready, reference in ((["jax", "torch"], "torch"), (["jax", "keras"], "jax")):
        monkeypatch.setattr(everything_study, lambda platform, ready=ready: ready)
        place = tmp_path / f"{reference}.toml"
        init.callback(place)
        assert f'reference = {{ framework = "{reference}"' in place.read_text()


def test_a_framework_of_which_no_cell_could_run_is_named_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everything_study = "harness.gate.everything_study.ready_frameworks"
    monkeypatch.setattr(everything_study, lambda platform: ["keras", "keras@jax", "tinygrad"])
    init.callback(tmp_path / "first.toml")
    study = load_study(tmp_path / "first.toml")
    assert study.matrix.axes["framework"] == ("keras", "tinygrad")
    assert "# Not keras@jax: on JAX Keras' step is compiled" in study.text
    monkeypatch.setattr(everything_study, lambda platform: ["keras@jax"])
    init.callback(tmp_path / "alone.toml")
    assert load_study(tmp_path / "alone.toml").matrix.axes["framework"] == ("keras@jax",)


def test_where_nothing_is_installed_the_study_says_how_to_build_it(tmp_path):
    text = first_study(Here("This machine", (), ("torch", "jax"), True, ("tinycnn",)))
    place = tmp_path / "first.toml"
    place.write_text(text)
    assert "bakeoff env create torch" in text
    assert load_study(place).matrix.axes["device"] == ("gpu",)


def test_a_list_of_frameworks_says_what_is_installed(tmp_path):
    listed = json.loads(bakeoff("list", "frameworks", "--json", cwd=tmp_path).stdout)
    installed = {one["name"]: one["installed"] for one in listed}
    assert installed["null"] is True
    assert "installed" in bakeoff("list", "frameworks", cwd=tmp_path).stdout.splitlines()[0]
