from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments import cache, inventory, local
from harness.environments.lock import EnvironmentReference
from harness.errors import BakeoffError, Unavailable, UsageError
from tests import needs
from tests.tiny_framework import LOCK, TinyFramework, Told

TINY = EnvironmentReference.parse("tiny")


def states(name: str = "tiny") -> list[str]:
    return [one.state for one in inventory.inventory() if one.name == name]


def test_an_environment_holds_exactly_what_the_lock_pins(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0")
    tiny.offer("1.1")
    built = local.create(TINY, told)
    assert dict(built.packages) == {"tiny": "1.0"}
    assert states() == ["ready"]


@pytest.mark.slow
def test_the_cpu_build_is_taken_where_the_index_offers_one(tiny: TinyFramework, told: Told) -> None:
    tiny.lock(LOCK.replace('[["tiny==1.0"]]', '[["tiny==1.0+cpu"], ["tiny==1.0"]]', 1))
    tiny.offer("1.0")
    tiny.offer("1.0+cpu")
    assert local.create(TINY, told).packages["tiny"] == "1.0+cpu"
    assert any("Tiny 1.0+cpu (cpu build), 1 packages" in line for line in told.said)


@pytest.mark.slow
def test_a_gpu_build_is_another_environment(tiny: TinyFramework, told: Told) -> None:
    cpu = tiny.built()
    gpu = local.create(TINY, told, device="gpu")
    assert cpu.root != gpu.root
    assert gpu.device == "gpu"


def test_what_is_built_is_reused(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0")
    first = local.create(TINY, told)
    again = local.create(TINY, told)
    assert again == first
    assert again.created_wall_ns == first.created_wall_ns


@pytest.mark.slow
def test_a_changed_lock_is_another_environment_and_the_old_one_can_go(
    tiny: TinyFramework, told: Told
) -> None:
    tiny.offer("1.1")
    first = tiny.built()
    tiny.lock(LOCK.replace("1.0", "1.1"))
    assert states() == ["not built", "old"]
    second = local.create(TINY, told)
    assert (second.root != first.root, second.packages["tiny"]) == (True, "1.1")


def test_an_index_without_the_pinned_version_is_named_as_the_fault(
    tiny: TinyFramework, told: Told
) -> None:
    tiny.offer("0.9")
    with pytest.raises(Unavailable, match=r"no package index that pip knows offers") as refused:
        local.create(TINY, told)
    assert "tiny==1.0" in str(refused.value)


@pytest.mark.slow
def test_an_interrupted_building_counts_for_nothing_and_goes_on(
    tiny: TinyFramework, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.offer("1.0")

    class Impatient(Told):
        def doing(self, text: str) -> None:
            if "installing" in text or "fetching" in text:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.create(TINY, Impatient())
    assert states() == ["not built", "unfinished"]
    built = local.create(TINY, told)
    assert any("going on" in line for line in told.said)
    assert (states(), cache.unfinished()) == (["ready"], [])
    assert built.is_whole


def test_an_unfinished_environment_with_groups_is_named_as_it_is_asked_for(
    tiny: TinyFramework,
) -> None:
    (tiny.home / "environments" / "tiny+extra+more-0123456789ab").mkdir(parents=True)
    left = inventory.inventory()[-1]
    assert (left.name, left.state) == ("tiny[extra,more]", "unfinished")
    assert left.detail == "go on with: bakeoff env create 'tiny[extra,more]'"


@pytest.mark.slow
def test_a_package_that_does_not_import_leaves_no_environment(
    tiny: TinyFramework, told: Told
) -> None:
    tiny.offer("1.0", source="raise ImportError('libtiny.so.1 is missing')\n")
    with pytest.raises(Unavailable, match=r"does not import: ImportError: libtiny\.so\.1"):
        local.create(TINY, told)
    assert states() == ["not built", "unfinished"]


@pytest.mark.slow
def test_an_environment_whose_python_went_away_is_built_again(
    tiny: TinyFramework, told: Told
) -> None:
    first = tiny.built()
    first.executable.unlink()
    first.executable.symlink_to("/nowhere/python")
    assert states() == ["not built", "old"] or states() == ["broken"]
    again = local.create(TINY, told)
    assert again.is_whole
    assert again.root == first.root


def test_check_names_a_file_that_was_changed(tiny: TinyFramework) -> None:
    built = tiny.built()
    assert inventory.check(TINY, built) == []
    next(built.root.glob("lib/python3*/site-packages/tiny/__init__.py")).write_text("x = 1\n")
    assert inventory.check(TINY, built) == ["not as it was installed: tiny/__init__.py"]


@pytest.mark.slow
def test_check_names_a_package_that_somebody_upgraded(tiny: TinyFramework) -> None:
    built = tiny.built()
    folder = next(built.root.glob("lib/python3*/site-packages/tiny-1.0.dist-info"))
    metadata = folder / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 1.7"))
    assert "tiny is 1.7, the lock says 1.0" in inventory.check(TINY, built)


@pytest.mark.slow
def test_groups_add_packages_to_an_environment_of_their_own(
    tiny: TinyFramework, told: Told
) -> None:
    tiny.offer("1.0")
    tiny.offer("2.0", name="tiny-extra")
    built = local.create(EnvironmentReference.parse("tiny[extra]"), told)
    assert dict(built.packages) == {"tiny": "1.0", "tiny-extra": "2.0"}
    assert states("tiny[extra]") == ["ready"]
    assert states() == ["not built"]


@pytest.mark.slow
def test_what_the_lock_does_not_pin_is_noted(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0", needs=("stray",))
    tiny.offer("3.0", name="stray")
    assert local.create(TINY, told).notes == ("stray 3.0 is not pinned by the lock",)


@pytest.mark.slow
def test_removing_gives_the_space_back(tiny: TinyFramework) -> None:
    built = tiny.built()
    assert inventory.owned(TINY) == [built.root]
    local.remove(built.root)
    assert not built.root.exists()
    assert states() == ["not built"]


@pytest.mark.slow
def test_what_is_being_built_is_not_removed(tiny: TinyFramework) -> None:
    built = tiny.built()
    with Path(f"{built.root}.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BakeoffError, match="being built by another bakeoff"):
            local.remove(built.root)
    assert built.is_whole


@pytest.mark.slow
def test_two_creators_build_once(tiny: TinyFramework) -> None:
    tiny.offer("1.0")
    command = [sys.executable, "-m", "harness.cli", "env", "create", "tiny", "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [json.loads(one.communicate(timeout=120)[0])[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_a_borrowed_environment_is_listed_under_both_names(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0")
    tiny.lock('title = "Small"\nsame_as = "tiny"\nimports = ["tiny"]\nshown = ["tiny"]\n', "small")
    built = local.create(EnvironmentReference.parse("small"), told)
    assert states("small") == states("tiny") == ["ready"]
    assert local.create(TINY, told).root == built.root
    with pytest.raises(UsageError, match="uses the environment of tiny"):
        inventory.owned(EnvironmentReference.parse("small"))


@pytest.mark.slow
def test_pip_settings_that_install_elsewhere_are_ignored(
    tiny: TinyFramework, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.offer("1.0")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert local.create(TINY, told).packages == {"tiny": "1.0"}
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_python_37_is_served_by_the_harness_own_pip(tiny: TinyFramework, told: Told) -> None:
    tiny.offer("1.0")
    built = local.create(TINY, told, python=Path(needs.python37()))
    assert built.python.startswith("cpython-3.7.")
    assert inventory.check(TINY, built) == []


@pytest.mark.framework
def test_the_torch_environment_is_as_its_lock_says() -> None:
    needs.framework("torch")
    environments = {one.reference: one for one in cache.finished()}
    assert inventory.check(EnvironmentReference.parse("torch"), environments["torch"]) == []
    assert os.access(environments["torch"].executable, os.X_OK)
