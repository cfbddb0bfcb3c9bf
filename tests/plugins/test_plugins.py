"""Install made-up distributions and hold the finding of plug-ins to its promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import plugins
from harness.cli.verbs.plan import command as plan
from harness.doctor import installation
from harness.errors import Unavailable, UsageError
from tests.plugins.conftest import Install, forget


def test_adding_a_workload_is_adding_a_file(install: Install) -> None:
    install("extra", a_new_one__dot__py="WORKLOAD = 'the workload'")
    assert "a-new-one" in plugins.workload_names()
    assert "alexnet" in plugins.workload_names()
    entry = plugins.modules("workloads")["a-new-one"]
    assert (entry.module, entry.origin) == ("extra.a_new_one", "extra_dist")
    assert plugins.workload("a-new-one") == "the workload"


def test_looking_imports_no_plug_in(install: Install) -> None:
    install("extra", broken__dot__py="raise SystemError('imported')")
    assert plugins.modules("workloads")["broken"].problem is None
    assert "extra.broken" not in sys.modules


def test_a_plug_in_that_fails_to_import_still_lists_with_its_reason(install: Install) -> None:
    install("extra", broken__dot__py="import no_such_library")
    listed = {entry.name: (entry, module) for entry, module in plugins.loaded("workloads")}
    entry, module = listed["broken"]
    assert module is None
    assert entry.problem == "ModuleNotFoundError: No module named 'no_such_library'"
    assert listed["alexnet"][1] is not None
    with pytest.raises(Unavailable, match=r"broken .from extra_dist. cannot be used: ModuleNotF"):
        plugins.workload("broken")


def test_a_workload_without_its_constant_says_so(install: Install) -> None:
    install("extra", empty__dot__py="")
    with pytest.raises(Unavailable, match=r"extra.empty has no constant WORKLOAD"):
        plugins.workload("empty")


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("", "no constant SETTINGS, no function launch, no function nodes, no function reach"),
        ("SETTINGS = ()\ndef launch(): ...", "no function nodes, no function reach"),
    ],
)
def test_a_launcher_is_refused_with_all_that_it_lacks(
    install: Install, tmp_path: Path, text: str, lacks: str
) -> None:
    install("extra", group="launchers", swarm__dot__py=text)
    profile = tmp_path / "hive.toml"
    profile.write_text('title = "Hive"\n[launcher]\nname = "swarm"\n')
    answer = CliRunner().invoke(plan, ["quickstart", "--platform", str(profile)])
    assert str(answer.exception) == (
        f"swarm (from extra_dist) cannot be used: extra.swarm has {lacks}"
    )


def test_the_doctor_names_a_module_without_what_its_group_is_read_for(install: Install) -> None:
    install("extra", group="samplers", meter__dot__py="HZ = 1.0\ndef open(observed): ...")
    told = [one for one in installation.look() if one.check == "plug-ins samplers"]
    assert [(one.level, one.seen) for one in told] == [
        ("warning", "meter of extra_dist: extra.meter has no constant BLOCKS")
    ]


def test_a_provider_package_that_is_missing_still_lists(install: Install, tmp_path: Path) -> None:
    install("extra")
    (tmp_path / "extra" / "__init__.py").unlink()
    (tmp_path / "extra").rmdir()
    forget()
    entry = plugins.modules("workloads")["extra_dist:extra"]
    assert entry.problem == "there is no package called extra"


def test_a_taken_name_lists_under_its_distribution(install: Install) -> None:
    install("extra", alexnet__dot__py="")
    entries = plugins.modules("workloads")
    assert entries["alexnet"].origin == "bakeoff"
    assert entries["extra_dist:alexnet"].problem == (
        "the name 'alexnet' is already taken by bakeoff"
    )


def test_files_of_adapters_and_platforms_are_found_like_modules(install: Install) -> None:
    install("extra", group="adapters", mine__dot__toml="", mine__dot__py="")
    assert plugins.adapter_files()["mine"].name == "mine.toml"
    assert "mine" in plugins.modules("adapters")


def test_a_misspelt_workload_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no workload is called 'alexnt'. Did you mean 'alexnet'"):
        plugins.workload("alexnt")


def test_an_uninstalled_bakeoff_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(sys, "path", [])
    try:
        with pytest.raises(
            Unavailable, match=r"not installed in this interpreter(.|\n)*make setup"
        ):
            plugins.modules("workloads")
    finally:
        forget()


def test_finding_plug_ins_imports_nothing_beyond_the_standard_library() -> None:
    script = (
        "import sys\nfrom harness import plugins\n"
        "plugins.workload_names(); plugins.adapter_files(); plugins.platform_files()\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}"
        " - set(sys.stdlib_module_names)))\n"
        "assert 'importlib.metadata' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    foreign = {name for name in eval(done.stdout) if not name.startswith("_")}
    ours = {"harness", "workloads", "platforms", "reports", "__main__"}
    assert foreign <= {*ours, "sitecustomize"}  # which some distributions start Python with
