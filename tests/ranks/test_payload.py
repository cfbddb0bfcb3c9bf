from __future__ import annotations

from pathlib import Path

import pytest

from harness import plugins
from harness.ranks.payload import Closures, Payload, gather


def payload(folder: Path, **files: str) -> Payload:
    written: dict[str, Path | None] = {}
    for name, text in files.items():
        inside = name.replace("__", "/") + ".py"
        place = folder / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        written[inside] = place
    return Payload(written, frozenset({"acme"}))


@pytest.fixture
def made(tmp_path):
    return payload(
        tmp_path,
        acme__small="import acme.lazy_user",
        acme__lazy_user="def f():\n    from . import far\n",
        acme__far="import numpy, json",
        acme__big__adapter="import importlib",
        acme__big__chosen_by_name="from ..far import x",
        acme__unused="",
        loads__nothing="",
    )


def test_a_closure_follows_imports_inside_functions_and_relative_ones(made):
    files = Closures(made).files("loads.nothing", "acme.small")
    assert files == ("acme/far.py", "acme/lazy_user.py", "acme/small.py", "loads/nothing.py")


def test_an_adapter_with_a_package_of_its_own_counts_as_a_whole(made):
    files = Closures(made).files("loads.nothing", "acme.big.adapter")
    assert "acme/big/chosen_by_name.py" in files
    assert "acme/far.py" in files
    assert "acme/small.py" not in files


def test_a_plug_in_that_imports_by_computed_names_counts_with_all_beside_it(tmp_path):
    found = payload(tmp_path, acme__small="__import__('acme.' + 'kernels')", acme__kernels="")
    assert "acme/kernels.py" in Closures(found).files("loads.nothing", "acme.small")
    found = payload(tmp_path, acme__small="from importlib import import_module", acme__kernels="")
    assert "acme/kernels.py" in Closures(found).files("loads.nothing", "acme.small")


def test_a_digest_changes_with_what_is_imported_and_with_nothing_else(made, tmp_path):
    before = Closures(made).digest("loads.nothing", "acme.small")
    (tmp_path / "acme" / "unused.py").write_text("changed = True")
    assert Closures(made).digest("loads.nothing", "acme.small") == before
    (tmp_path / "acme" / "far.py").write_text("changed = True")
    assert Closures(made).digest("loads.nothing", "acme.small") != before


def test_the_payload_holds_the_worker_side_and_nothing_of_the_host(tmp_path):
    gather().copy(tmp_path / "payload")
    top = {path.name for path in (tmp_path / "payload").iterdir()}
    inside = {path.name for path in (tmp_path / "payload" / "harness").iterdir()}
    assert top == {"harness", "workloads"}
    assert inside == {"__init__.py", "worker"}
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    """A distribution whose adapters lie deep inside a package of its own."""
    distribution = tmp_path / "site" / "acme-1.0.dist-info"
    adapters = tmp_path / "site" / "acme" / "plugins" / "adapters"
    for folder in (distribution, adapters):
        folder.mkdir(parents=True)
    declared = "[bakeoff.adapters]\nacme = acme.plugins.adapters\n"
    (distribution / "entry_points.txt").write_text(declared)
    for package in (adapters, adapters.parent, adapters.parent.parent):
        (package / "__init__.py").write_text("import sys  # of the host\n")
    (adapters / "swift.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = (plugins.providers, plugins._entry_points)
    for cached in found:
        cached.cache_clear()
    yield
    for cached in found:
        cached.cache_clear()


def test_a_third_partys_adapters_travel_without_the_rest_of_its_package(third_party, tmp_path):
    gather().copy(tmp_path / "payload")
    acme = tmp_path / "payload" / "acme"
    files = {str(path.relative_to(acme)) for path in acme.rglob("*.py")}
    assert files == {
        "__init__.py",
        "plugins/__init__.py",
        "plugins/adapters/__init__.py",
        "plugins/adapters/swift.py",
    }
    assert (acme / "__init__.py").read_text() == ""
    assert (acme / "plugins" / "adapters" / "__init__.py").read_text() != ""


def test_one_framework_is_not_in_the_closure_of_another():
    ours = gather()
    files = Closures(ours).files("workloads.nothing", "harness.worker.adapters.null")
    assert "harness/worker/loop.py" in files
    assert "harness/worker/adapters/null.py" in files
    assert not [file for file in files if "/adapters/torch/" in file or file.endswith("alexnet.py")]
