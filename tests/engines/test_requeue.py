from __future__ import annotations

import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


def wait_for(text: str, root: Path, pattern: str) -> None:
    end = time.monotonic() + 200
    while not any(text in file.read_text() for file in root.glob(pattern)):
        assert time.monotonic() < end
        time.sleep(0.2)


def wait_until_it_waits_again(site, slurm) -> None:
    """Wait until the queue says that its one job runs no more."""
    end = time.monotonic() + 200
    asked = ("squeue", "--noheader", "--format=%T")
    said = ["RUNNING"]
    while said in ([], ["RUNNING"]):  # none: the queue did not answer
        assert time.monotonic() < end
        time.sleep(0.5)
        said = site.hosts.run("h0", *asked, env=slurm.env, check=False).stdout.split()


def test_a_job_whose_node_dies_goes_on_narrower_and_again_when_the_node_is_back(site, slurm):
    site.platform("slurm")
    site.study("null", "ddp", nodes=[1, 3], until="3 s")
    study = ("run", "study.toml", "--platform", "there.toml", "--name", "dies", "--detach")
    slurm.bakeoff(*study, "--max-jobs", "1")
    root = site.folder / "runs" / "dies"
    wait_for('"measure"', root, "cells/*/trial-1/events.2.jsonl")
    site.hosts.power_off("h3")
    try:
        wait_until_it_waits_again(site, slurm)
        first = site.outcomes("runs/dies")
    finally:
        site.hosts.boot("h3")
    (lost,) = [one for one in first if one["outcome"] == "node-lost"]
    (narrow,) = [one for one in first if one["outcome"] == "ok"]
    assert len(first) == 2
    assert "h3" in lost["reason"]
    assert [rank["host"] for rank in narrow["ranks"]] == ["h1"]
    slurm.bakeoff("status", "runs/dies", "--wait")
    (again,) = [one for one in site.outcomes("runs/dies") if one not in first]
    assert (lost["trial"], again["trial"]) == ("trial-1", "trial-1.2")
    assert (again["outcome"], again["cell_key"]) == ("ok", lost["cell_key"])
    assert [rank["host"] for rank in again["ranks"]] == ["h1", "h2", "h3"]
