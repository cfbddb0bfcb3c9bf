from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.environments import pythons
from harness.environments.lock import EnvironmentReference, load_lock, lock_files, parse_lock
from harness.environments.package_index.download_size import amount
from harness.environments.package_index.pip import Item
from harness.environments.pythons import satisfies
from harness.errors import FaultyFile, Unavailable, UsageError
from harness.units import decimal_size
from tests import needs


@pytest.mark.parametrize("name", sorted(lock_files()))
def test_every_package_of_every_shipped_lock_is_pinned_exactly(name: str) -> None:
    lock = load_lock(name)
    for device in ("cpu", "gpu"):
        for group in ((), *((one,) for one in lock.groups)):
            reference = EnvironmentReference(lock.name.partition("@")[0], None, group)
            for requirements in lock.requirements(reference, device):
                assert all(one.count("==") == 1 for one in requirements)
    assert all(version[0].isdigit() for version in lock.pins.values())
    assert not lock.is_built or (lock.imports and lock.shown)


@pytest.mark.parametrize("name", sorted(lock_files()))
def test_no_lock_names_an_index(name: str) -> None:
    text = lock_files()[name].read_text("utf-8")
    assert "://" not in text
    assert "index" not in text.replace("an index that does not", "").replace("package index", "")


@pytest.mark.parametrize("text", ["torch", "tensorflow@1.15", "torch[hdf5]", "a-b@c_d[x,y]"])
def test_a_reference_reads_back_as_written(text: str) -> None:
    assert str(EnvironmentReference.parse(text)) == text


@pytest.mark.parametrize("text", ["", "../torch", "torch@", "torch[]", "Torch", "a b", "@x"])
def test_what_is_no_reference_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"tensorflow@1\.15"):
        EnvironmentReference.parse(text)


def test_a_lock_without_exact_pins_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "loose.toml"
    file.write_text('titel = "x"\n[cpu]\nchoices = [["torch>=2"]]\n')
    with pytest.raises(FaultyFile) as refused:
        parse_lock("loose", file)
    assert "'torch>=2' must be pinned with ==" in str(refused.value)
    assert "titel: unknown key. Did you mean 'title'?" in str(refused.value)


def test_an_unknown_group_names_the_ones_there_are() -> None:
    with pytest.raises(UsageError, match=r"no group 'hfd5'\. Did you mean 'hdf5'\?"):
        load_lock("torch").pinned(EnvironmentReference("torch", None, ("hfd5",)))


@pytest.mark.parametrize(
    ("version", "specifier", "answer"),
    [
        ((3, 11, 7), ">=3.11,<3.15", True),
        ((3, 15, 0), ">=3.11,<3.15", False),
        ((3, 7, 16), ">=3.7,<3.8", True),
        ((3, 10, 1), ">=3.11", False),
        ((3, 7, 1), "==3.7", True),
        ((2, 7, 18), "", True),
    ],
)
def test_versions_are_compared_as_numbers(
    version: tuple[int, ...], specifier: str, answer: bool
) -> None:
    assert satisfies(version, specifier) is answer


def test_an_interpreter_outside_the_range_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tensorflow@1\.15 needs Python >=3\.7,<3\.8"):
        pythons.find(">=3.7,<3.8", explicit=Path(sys.executable), purpose="tensorflow@1.15")


def test_a_python_named_by_variable_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_PYTHON37", needs.python37())
    monkeypatch.setenv("PATH", "/nowhere")
    assert pythons.find(">=3.7,<3.8").version[:2] == (3, 7)


def test_a_python_is_found_among_the_versions_of_pyenv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("3.7.9", "3.7.16"):
        (tmp_path / "versions" / version / "bin").mkdir(parents=True)
    (tmp_path / "versions/3.7.9/bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "versions/3.7.16/bin/python").symlink_to(needs.python37())
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("BAKEOFF_PYTHON37", raising=False)
    assert pythons.find(">=3.7,<3.8").version[:2] == (3, 7)


def test_a_missing_python_comes_with_three_cures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("BAKEOFF_PYTHON37", raising=False)
    with pytest.raises(Unavailable) as missing:
        pythons.find(">=3.7,<3.8", purpose="tensorflow@1.15")
    for cure in ("pyenv install 3.7", "export BAKEOFF_PYTHON37=", "--python /path"):
        assert cure in str(missing.value)


def test_what_is_here_already_is_not_counted_as_fetched(tmp_path: Path) -> None:
    wheel = tmp_path / "a b.whl"
    wheel.write_bytes(b"x" * 5_000)
    items = [
        Item("a", "1", wheel.as_uri(), "0" * 64),
        Item("d", "1", "ftp://nowhere/d.whl", "0" * 64),
    ]
    what = amount(items)
    assert (what.here_bytes, what.fetch_bytes, what.unknown) == (5_000, 0, 1)
    assert str(what) == "2 packages, 5 kB: 5 kB here already, 0 B to fetch, and 1 of unknown size"


def test_sizes_read_as_on_package_indexes() -> None:
    assert [decimal_size(n) for n in (0, 999, 1_500, 191_794_682, 1_523_000_000)] == [
        *("0 B", "999 B", "2 kB", "192 MB", "1.5 GB")
    ]
