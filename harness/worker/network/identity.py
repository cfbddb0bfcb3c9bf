"""Hold what was opened to be the workload that it is called, before anything is timed."""

from __future__ import annotations

from typing import Any, Mapping

from harness.worker.contracts import Refused, door
from harness.worker.feed import work_per_sample
from harness.worker.job import Job
from harness.worker.network.shapes import count
from harness.worker.network.workload import Training


class WrongIdentity(Refused):
    """Say that what would be timed is not the workload it is called."""


def read(activity: Any, workload: Training) -> Mapping[str, Any]:
    """Count the network as it is described, and what the framework says that it learns."""
    counts = count(workload.network)
    learned = door(activity, "parameters")
    return {
        "parameters": counts.parameters,
        "macs": counts.macs,
        "shapes": counts.shapes,
        "digest": counts.identity,
        "lowered": None if learned is None else learned(),
    }


def require(found: Mapping[str, Any], activity: Any, workload: Training, job: Job) -> None:
    """Refuse other counts than the workload states; a framework may say nothing of parameters."""
    framework, unit = job.framework, workload.unit
    work = float(job.scale.batch_per_rank * work_per_sample(workload))
    for what, expected, counted in (
        ("{} in a step of a rank in {}".format(unit, framework), work, activity.units.get(unit)),
        ("parameters as described", workload.parameters, found["parameters"]),
        ("multiplications as described", workload.macs, found["macs"]),
        ("parameters in " + framework, workload.parameters, found["lowered"]),
    ):
        if counted not in (None, expected):
            raise WrongIdentity(
                "{}: {:.10g} {}, not {:.10g}".format(workload.name, counted, what, expected)
            )
