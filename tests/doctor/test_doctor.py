from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from harness.doctor import installation, machine_checks
from harness.doctor.finding import DoctorFinding
from harness.doctor.report import Report
from harness.errors import Unavailable
from harness.machine.gpus import Gpu
from harness.machine.machine import Machine, NumaNode, read_machine
from harness.plugins import Entry
from tests.tiny_framework import TinyFramework

GPU = Gpu("GPU-1", "H100", "580", 80, 0, 0, persistence=True, ecc=True, power_limit_w=700.0)


@pytest.fixture
def quiet(tmp_path: Path) -> Machine:
    """A bare-metal machine on which nothing spoils anything."""
    empty = read_machine(tmp_path, allowed=range(8), environ={})
    return dataclasses.replace(
        empty,
        cpus_online=8,
        cores_allowed=8,
        shared_cpus=(),
        governors=("performance",),
        turbo=False,
        load=(0.1, 0.1, 0.1),
        memory_bytes=10**10,
        memory_available_bytes=9 * 10**9,
        swap_used_bytes=0,
        page_cache_bytes=10**9,
        dirty_bytes=0,
        transparent_huge_pages="madvise",
        numa_balancing=False,
        clock_source="tsc",
        gpus=(GPU,),
    )


def test_nothing_is_wrong_with_a_quiet_machine(quiet: Machine) -> None:
    assert {one.level for one in machine_checks.judge(quiet)} == {"fine"}


@pytest.mark.parametrize(
    ("change", "check", "seen", "remedy"),
    [
        (
            {"cpus_allowed": (0, 1), "cores_allowed": 2},
            "processors",
            "2 of 8 CPUs",
            "use 3 or more",
        ),
        ({"governors": ("powersave",)}, "governor", "powersave", "cpupower frequency-set"),
        ({"turbo": True}, "turbo", "on", "cpufreq/boost"),
        ({"shared_cpus": (2,)}, "hyper-threads", "cores of CPUs 2", "nomultithread"),
        ({"cores_allowed": 4}, "hyper-threads", "8 CPUs on 4 cores", "threads = cores"),
        ({"load": (7.5, 1.0, 1.0)}, "load", "7.50 on 8 CPUs", "Stop what else runs"),
        ({"cpu_quota": 3.5}, "cpu quota", "3.5 CPUs on 8 allowed", "cpuset"),
        ({"cpu_quota": 8.0, "throttled_s": 2.0}, "cpu quota", "stopped for 2.0 s", "cpuset"),
        ({"memory_available_bytes": 10**9}, "memory", "1.0 GB free", "End what fills"),
        ({"swap_used_bytes": 10**9}, "memory", "1.0 GB swapped out", "swapoff -a"),
        ({"transparent_huge_pages": "always"}, "huge pages", "always", "echo madvise"),
        ({"dirty_bytes": 10**9}, "page cache", "1.0 GB of them not yet written", "Run `sync`"),
        (
            {"numa": (NumaNode((0,), 1), NumaNode((1,), 1))},
            *("thread pinning", "none, 2 NUMA nodes", 'threads = "pinned"'),
        ),
        ({"thread_binding": "spread"}, "thread pinning", "'spread' here", "Unset OMP_PROC_BIND"),
        (
            {"numa_balancing": True, "numa": (NumaNode((0,), 1), NumaNode((1,), 1))},
            *("numa balancing", "on, 2 NUMA nodes", "bind ranks"),
        ),
        (
            {"clock_source": "hpet", "clock_sources": ("hpet", "tsc")},
            *("clock source", "hpet", "also offers: hpet, tsc"),
        ),
        ({"hypervisor": "KVM", "steal_share": 0.03}, "hypervisor", "KVM; 3.0 %", "dedicated host"),
        ({"gpus": None}, "gpus", "no answer from the driver", "nvidia-smi"),
        (
            {"gpus": (dataclasses.replace(GPU, processes=2),)},
            *("gpus", "2 processes compute on 1 of them", "CUDA_VISIBLE_DEVICES"),
        ),
        (
            {"gpus": (dataclasses.replace(GPU, persistence=False),)},
            *("gpus", "persistence mode is off", "nvidia-smi -pm 1"),
        ),
        (
            {"gpus": (GPU, dataclasses.replace(GPU, ecc=False))},
            *("gpus", "ECC is on in some", "nvidia-smi -e"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_spoils_numbers_is_shown_with_its_figure_and_remedy(
    quiet: Machine, change: dict[str, object], check: str, seen: str, remedy: str
) -> None:
    findings = machine_checks.judge(dataclasses.replace(quiet, **change))  # type: ignore[arg-type]
    spoilt = {one.check: one for one in findings if one.level != "fine"}
    numa = {"thread pinning"} if "numa" in change else set()  # two memories concern it as well
    assert set(spoilt) == {check} | numa
    assert spoilt[check].level == "warning"
    assert seen in spoilt[check].seen
    assert remedy in spoilt[check].remedy


def test_what_a_machine_hides_is_unknown_and_no_warning(tmp_path: Path) -> None:
    blind = read_machine(tmp_path, allowed=range(4), environ={})
    levels = {one.check: one.level for one in machine_checks.judge(blind)}
    for check in ("governor", "turbo", "load", "memory", "huge pages", "clock source"):
        assert levels[check] == "unknown"
    assert "warning" not in levels.values()


def test_a_report_is_sound_until_something_must_be_repaired() -> None:
    warning, fault = DoctorFinding("a", "warning", "x"), DoctorFinding("b", "fault", "y")
    assert Report((warning,), (warning,)).is_sound
    assert not Report((warning, fault), ()).is_sound


def test_this_installation_is_sound() -> None:
    faults = [one for one in installation.look() if one.level == "fault"]
    assert faults == []


def test_a_foreign_package_of_our_name_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "reports", raising=False)
    found = {one.check: one for one in installation.look()}
    assert found["package reports"].level == "fault"
    assert str(tmp_path) in found["package reports"].seen


def test_a_library_that_is_too_old_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation.metadata, "version", lambda name: "0.0.1")
    library = next(one for one in installation.look() if one.check == "libraries")
    assert library.level == "fault"
    assert "click is 0.0.1, 8.2 is needed" in library.seen


def test_a_plug_in_that_fails_is_named_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"x": Entry("x", "acme.x", "acme", Path(), "ImportError: no acme")}
    real = installation.plugins.modules
    monkeypatch.setattr(
        installation.plugins,
        "modules",
        lambda group: {**real(group), **(broken if group == "workloads" else {})},
    )
    seen = [one for one in installation.look() if one.check == "plug-ins workloads"]
    assert [(one.level, one.seen) for one in seen] == [
        ("warning", "x of acme: ImportError: no acme")
    ]


def test_an_installation_without_entry_points_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(group: str) -> dict[str, Entry]:
        raise Unavailable("Bakeoff is not installed in this interpreter.\n    Run `make setup`")

    monkeypatch.setattr(installation.plugins, "modules", refuse)
    found = next(one for one in installation.look() if one.check == "plug-ins")
    assert (found.level, found.remedy) == ("fault", "Run `make setup`")


def test_no_environment_at_all_comes_with_the_command_to_build_one(tiny: TinyFramework) -> None:
    found = next(one for one in installation.look() if one.check == "environments")
    assert (found.level, found.remedy) == ("warning", "bakeoff env create torch")


def test_left_over_environments_are_counted(tiny: TinyFramework) -> None:
    folder = tiny.home / "environments" / "gone-0123456789ab"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 2_000)
    found = next(one for one in installation.look() if one.check == "environments left over")
    assert (found.seen, found.remedy) == ("1 old or unfinished, 2 kB", "bakeoff env remove --old")


def test_programs_are_found_or_said_to_be_optional(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caffe = tmp_path / "caffe"
    caffe.write_text("#!/bin/sh\necho caffe version 1.0.0\n")
    caffe.chmod(0o755)
    monkeypatch.setenv("CAFFE_BIN", str(caffe))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {one.check: one for one in installation.look()}
    named = found["environment caffe"]
    assert (named.level, named.seen) == ("fine", "1.0.0, where CAFFE_BIN says")
    assert found["clang"].seen == "not found; only for the environment tinygrad"
    assert (found["sbatch"].level, found["sbatch"].remedy) == (
        "unknown",
        "Run on a login node of the cluster.",
    )
