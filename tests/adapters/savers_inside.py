"""Run in a framework's interpreter: its savers, while the state changes under them.

``python -m tests.adapters.savers_inside FOLDER FRAMEWORK [SAVER …]`` prints a JSON object for each.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from harness.worker import feed as feeds
from harness.worker.checkpoints import checkpoint_files
from harness.worker.checkpoints.request import Asked
from harness.worker.checkpoints.series import Series
from harness.worker.job import Job, Span
from harness.worker.place import Place
from harness.worker.scale import Scale
from workloads.tinycnn import WORKLOAD

ALONE = Place(0, 1, 0, 1, "here", "none")


def main(folder: str, framework: str, *savers: str) -> None:
    for saver in savers or ("",):
        print(json.dumps(told(folder, framework, {"saver": saver} if saver else {})))


def told(folder: str, framework: str, options: dict[str, Any]) -> dict[str, Any]:
    """Save through a fast tier, train on at once, restore; say what came back."""
    module = f"harness.worker.adapters.{framework}.adapter"
    factors = {"precision": "fp32", "checkpoint_every": 1}
    job = _job(framework, module, factors, options, folder)
    adapter = importlib.import_module(module).open(job, ALONE)
    described = feeds.describe(WORKLOAD, job.scale, seed=1, place=ALONE)
    activity = adapter.activity(WORKLOAD, described, options)
    activity.step()
    activity.sync()
    saver = activity.saver()
    series = Series(Asked(1, folder + "/slow", folder + "/fast", False), saver, ALONE)
    before = saver.digest()
    series.save(1)
    for _ in range(3):
        activity.step()
    activity.sync()
    changed = saver.digest()
    series.finish()
    one = series.newest()
    saver.restore(one.folder)
    activity.sync()
    result = {
        "saver": saver.name,
        "changed": changed != before,
        "restored": saver.digest() == before,
        "true": checkpoint_files.is_true(one),
        "bytes": saver.bytes,
        "tier": one.folder[len(folder) :],
    }
    activity.step()  # training goes on from there
    activity.sync()
    series.close()
    return result


def _job(
    framework: str, module: str, factors: dict[str, Any], options: dict[str, Any], folder: str
) -> Job:
    return Job(
        purpose="trial",
        cell_key="k",
        trial="trial-1",
        workload=WORKLOAD.name,
        workload_module="workloads.tinycnn",
        framework=framework,
        adapter_module=module,
        environment=framework,
        strategy="none",
        scale=Scale(batch_per_device=4),
        factors=factors,
        options=options,
        warmup=Span(steps=1),
        until=Span(steps=1),
        seed=1,
        directory=folder,
        paths={},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
