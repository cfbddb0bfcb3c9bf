from __future__ import annotations

import pytest

from harness.environments.from_source import source_build
from harness.environments.from_source.source_recipe import Substitution, read_source
from harness.environments.lock import EnvironmentReference, load_lock
from harness.environments.package_index.pip import Installer
from harness.errors import Unavailable


def test_horovods_environments_are_the_frameworks_with_one_thing_built():
    plain, built = load_lock("torch"), load_lock("torch@horovod")
    assert plain.packages.items() <= built.packages.items()
    assert built.choices == plain.choices
    assert built.sources == ("horovod",)
    assert built.pinned(EnvironmentReference.parse("torch@horovod"))["horovod"] == "0.28.1"
    said = built.content(EnvironmentReference.parse("torch@horovod"), "cpu")
    assert said["sources"] == {"horovod": read_source("horovod").digest}
    assert "sources" not in plain.content(EnvironmentReference.parse("torch"), "cpu")


def test_a_substitution_has_to_fit(tmp_path):
    file = tmp_path / "CMakeLists.txt"
    file.write_text("set(A 14)\nset(A 14)\n")
    source_build.substitute(file, Substitution("CMakeLists.txt", "set(A 14)", "set(A 17)", "newer"))
    assert file.read_text() == "set(A 17)\nset(A 14)\n"
    with pytest.raises(Unavailable, match=r"CMakeLists.txt: .* not there \(newer\)"):
        source_build.substitute(file, Substitution("CMakeLists.txt", "set(B 1)", "", "newer"))


def test_a_missing_compiler_is_said_plainly_with_its_cure(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    pip = Installer(("pip",), tmp_path / "bin" / "python")
    with pytest.raises(Unavailable) as told:
        source_build.add(read_source("horovod"), "torch", (tmp_path, "cp311"), pip, print)
    assert "has to be compiled, and this machine lacks:\n    g++: apt-get" in str(told.value)
    assert "cmake: " in str(told.value)
