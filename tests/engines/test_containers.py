from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.analysis.read import read_results
from harness.sections.starting import starting
from tests.needs import program

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(300)]

CONTAINER = """
[frameworks.null.container]
engine = "charliecloud"
image = "{image}"
interpreter = "{python}"
binds = {binds}
"""


def hollow_image(folder: Path, mounts: list[Path]) -> Path:
    """Make an image that is nothing but places to mount at: the host lends what it needs."""
    image = folder / "image"
    for name in ("dev", "proc", "sys", "tmp", "etc", *(str(mount)[1:] for mount in mounts)):
        (image / name).mkdir(parents=True, exist_ok=True)
    for name in ("etc/hosts", "etc/resolv.conf"):
        (image / name).touch()
    for link in map(Path, ("/bin", "/lib", "/lib64")):
        if link.is_symlink():
            (image / link.name).symlink_to(link.readlink())
    return image


def test_a_cell_enters_its_container_on_two_nodes_and_the_page_says_what_that_took(site, slurm):
    program("ch-run", package="charliecloud-runtime")
    python = Path(sys.executable).resolve()
    lent = [Path("/usr"), python.parents[1], site.folder]
    site.platform("slurm")
    with (site.folder / "there.toml").open("a") as file:
        binds = [f"{path}:{path}:rw" for path in lent]
        image = hollow_image(site.folder, lent)
        file.write(CONTAINER.format(image=image, python=python, binds=binds))
    site.study("null", "ddp", nodes=2, until="0.1 s", more="container = [false, true]")
    site.hosts.run("h0", "salloc", "-N2", "--exclusive", *site.command, env=slurm.env)
    outcomes = site.outcomes()
    assert [outcome["outcome"] for outcome in outcomes] == ["ok", "ok"], outcomes
    assert [[rank["host"] for rank in outcome["ranks"]] for outcome in outcomes] == [
        ["h1", "h2"]
    ] * 2
    table = starting(read_results([site.folder / "run"]))
    names = [column.key for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    assert {row["container"]: row["image_ms"] is not None for row in rows} == {
        False: False,
        True: True,
    }
