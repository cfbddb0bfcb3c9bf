"""Hold packages that were edited in place to being noticed, and named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.environments import inventory
from harness.environments.cache import Environment
from harness.environments.identity import contents
from harness.environments.identity.changes import changes
from harness.environments.lock import EnvironmentReference
from harness.environments.worker_python import Interpreter, identified, resolve
from tests.environments.test_worker_python import platform
from tests.tiny_framework import TinyFramework

TINY = EnvironmentReference.parse("tiny")


@pytest.fixture
def built(tiny: TinyFramework) -> Environment:
    return tiny.built()


@pytest.fixture
def package(built: Environment) -> Path:
    (site,) = built.root.glob("lib/python3*/site-packages")
    return site / "tiny"


def now() -> Interpreter:
    return identified(resolve("tiny", platform()))


def test_an_untouched_environment_is_as_it_was_installed(built: Environment) -> None:
    assert now().edited == ()
    assert inventory.check(TINY, built) == []


def test_an_edited_file_is_named_though_its_size_is_the_same(built, package) -> None:
    before, module = now(), package / "__init__.py"
    module.write_text(module.read_text().replace("1.0", "9.0"))
    after = now()
    assert after.identity != before.identity
    assert after.edited == ("tiny/__init__.py",)
    words = "the files of tiny changed (tiny/__init__.py)"
    assert changes("tiny", before.record(), after) == [f"tiny: {words}"]
    assert "not as it was installed: tiny/__init__.py" in inventory.check(TINY, built)


def test_a_module_that_no_package_brought_is_named(built, package) -> None:
    before = now()
    (package.parent / "sitecustomize.py").write_text("import tiny\n")
    words = "sitecustomize.py was added (sitecustomize.py (of no package))"
    assert changes("tiny", before.record(), now()) == [f"tiny: {words}"]
    named = "not as it was installed: sitecustomize.py (of no package)"
    assert named in inventory.check(TINY, built)


def test_what_lies_behind_a_link_is_held_to_its_package_too(built, package) -> None:
    elsewhere = built.root / "elsewhere"
    package.rename(elsewhere)
    package.symlink_to(elsewhere)
    (elsewhere / "again").symlink_to(elsewhere)  # which leads round and round
    assert now().edited == ()
    before, module = now(), elsewhere / "__init__.py"
    module.write_text(module.read_text().replace("1.0", "9.0"))
    assert now().identity != before.identity
    assert now().edited == ("tiny/__init__.py",)


def test_the_machines_packages_beside_an_environments_own_are_named(built) -> None:
    before, settings = now(), built.root / "pyvenv.cfg"
    own = "include-system-site-packages = false"
    assert own in settings.read_text()
    settings.write_text(settings.read_text().replace(own, own.replace("false", "true")))
    words = "pyvenv.cfg was added (pyvenv.cfg (lets the machine's own packages in))"
    assert changes("tiny", before.record(), now()) == [f"tiny: {words}"]
    assert f"not as it was installed: {now().edited[0]}" in inventory.check(TINY, built)


def test_byte_code_and_what_installers_note_change_nothing(built, package) -> None:
    before = now().identity
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "tiny.cpython-311.pyc").write_bytes(b"x")
    (record,) = package.parent.glob("tiny-*.dist-info/INSTALLER")
    record.write_text("another")
    assert now().identity == before


def test_files_are_read_again_only_where_they_changed(built, package, monkeypatch) -> None:
    read: list[str] = []
    whole = contents._digest
    monkeypatch.setattr(contents, "_YOUNG_NS", -(10**12))
    monkeypatch.setattr(contents, "_digest", lambda file: read.append(file.name) or whole(file))
    first = contents.built_contents(built.root)
    assert "__init__.py" in read
    read.clear()
    assert contents.built_contents(built.root) == first
    assert read == []
    module = package / "__init__.py"
    content, stamp = module.read_text(), module.stat()
    module.write_text(content.replace("1.0", "9.0"))
    os.utime(module, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as `touch -r` does
    assert contents.built_contents(built.root) != first
    assert read == ["__init__.py"]


def test_what_is_kept_of_files_may_be_damaged(built, monkeypatch) -> None:
    monkeypatch.setattr(contents, "_YOUNG_NS", -(10**12))
    first = contents.built_contents(built.root)
    (kept,) = (contents.cache.home() / "contents").iterdir()
    for damage in ("{", "[]", json.dumps({"version": 1, "files": {"a": 1}})):
        kept.write_text(damage)
        assert contents.built_contents(built.root) == first


def test_a_file_whose_name_is_no_unicode_is_digested(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / os.fsdecode(b"caf\xe9.py")).touch()
    assert len(contents.foreign_contents((site,)).packages) == 1
