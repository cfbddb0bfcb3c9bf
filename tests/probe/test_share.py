"""Probe from inside a control group with limits, and through another machine's hwloc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.probe.probe import look

GROUPS = Path("/sys/fs/cgroup")
_GIB = 2**30


@pytest.fixture
def limited() -> Iterator[list[Path]]:
    """Make control groups (version 1) with 1.5 CPUs' worth of time and 2 GiB, if we may."""
    groups = [GROUPS / name / f"bakeoff-test-{os.getpid()}" for name in ("cpu", "memory")]
    limits = [("cpu.cfs_quota_us", "150000"), ("memory.limit_in_bytes", str(2 * _GIB))]
    try:
        for group, (name, value) in zip(groups, limits, strict=True):
            group.mkdir()
            (group / name).write_text(value)
    except OSError as problem:
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        pytest.skip(f"no control group of version 1 can be made here: {problem}")
    yield groups
    for group in groups:
        group.rmdir()


@pytest.mark.engine
def test_a_real_quota_is_reported_as_the_share_and_not_the_node(limited: list[Path]) -> None:
    joins = "; ".join(f"echo $$ > {group}/cgroup.procs" for group in limited)
    command = f"{joins}; exec {sys.executable} -m harness.cli platforms probe --json"
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    node = json.loads(answer.stdout)["node"]
    assert node["cpu_quota"] == 1.5
    assert node["memory_share"] == "2 GiB"
    assert node["memory"][0]["size"] != "2 GiB", "the node itself is larger"


def test_hwloc_is_asked_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    mask = hex(sum(1 << cpu for cpu in cpus))
    cores = "".join(
        f'<object type="Core" cpuset="{hex(1 << cpu)}">'
        f'<object type="PU" os_index="{cpu}"/></object>'
        for cpu in cpus
    )
    (tmp_path / "machine.xml").write_text(
        f'<topology version="2.0"><object type="Machine" cpuset="{mask}" allowed_cpuset="{mask}">'
        f'<object type="NUMANode" os_index="7" cpuset="{mask}" local_memory="1"/>{cores}</object>'
        "</topology>"
    )
    program = tmp_path / "lstopo-no-graphics"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/machine.xml\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    seen = look()
    assert seen.topology_from == "hwloc"
    assert [one.number for one in seen.topology.memories] == [7]
    program.write_text("#!/bin/sh\necho nonsense\n")
    assert look().topology_from == "/sys"
