"""Ask devices and Lustre's servers what they gave, and believes no cold epoch alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.worker.input.evidence import page_cache
from harness.worker.input.evidence.counters import given

pytestmark = pytest.mark.io

STATS = """snapshot_time 1 secs
read_bytes 12 samples [bytes] 4096 1048576 {0}
write_bytes 1 samples [bytes] 1 1 1
"""


def test_a_device_counts_its_sectors(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    device = tmp_path / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    device.mkdir(parents=True)
    (device / "stat").write_text("  10  0  2048  5  0 0 0 0 0 0 0\n")
    assert given(str(tmp_path), "ext4", str(tmp_path)) == 2048 * 512
    assert given(str(tmp_path), "tmpfs", str(tmp_path / "elsewhere")) is None


def test_lustre_s_servers_are_added_up(tmp_path: Path) -> None:
    for number, total in enumerate((9_437_184, 1_000)):
        server = tmp_path / f"proc/fs/lustre/osc/scratch-OST000{number}-osc-ffff"
        server.mkdir(parents=True)
        (server / "stats").write_text(STATS.format(total))
    assert given(str(tmp_path), "lustre", str(tmp_path)) == 9_438_184
    assert given(str(tmp_path), "lustre", str(tmp_path / "nowhere")) is None


@pytest.mark.parametrize(
    ("resident", "moved", "label"),
    [(0, 1000, "cold"), (0, 0, "warm"), (1000, 1000, "warm"), (0, 500, "mixed")],
)
def test_where_nobody_is_charged_pages_and_storage_have_to_agree(
    resident: int, moved: int, label: str
) -> None:
    told = page_cache.proof(1000, 0, resident, "lustre", moved)
    assert told["cache"] == label
    assert "storage gave" in str(told["witness"])


@pytest.mark.parametrize("kind", ["fuse", "fuse.sshfs", "nfs4"])
@pytest.mark.parametrize(
    ("resident", "label"),
    [(0, "cold here; beneath unknown"), (500, "mixed"), (1000, "warm"), (3000, "warm")],
)
def test_a_page_cache_alone_is_no_witness_of_what_lies_beneath_it(
    kind: str, resident: int, label: str
) -> None:
    """A pass-through over files that are cached themselves has no page of its own in memory."""
    told = page_cache.proof(1000, 0, resident, kind)
    assert told["cache"] == label
    assert told["cold_fraction"] == max(0.0, 1 - resident / 1000)
