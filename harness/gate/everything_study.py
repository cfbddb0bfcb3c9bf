"""The study of every network in every framework that is ready here, at its defaults."""

from __future__ import annotations

from typing import Any

from harness import plugins
from harness.environments import worker_python
from harness.environments.lock import lock_files
from harness.errors import Unavailable
from harness.platform.platform import Platform
from harness.study.framework import framework_info, framework_names
from harness.worker.network.workload import Training


def study_of_all(platform: Platform) -> dict[str, Any]:
    """Give the study as a file would hold it; refuse where no framework is ready."""
    frameworks = ready_frameworks(platform)
    if not frameworks:
        raise Unavailable(
            "No framework is ready here, so there is nothing to verify.\n"
            "    Build one: bakeoff env create torch"
        )
    names = plugins.workload_names()
    networks = [name for name in names if isinstance(plugins.workload(name), Training)]
    return {
        "title": "Every network in every framework that is ready here",
        "matrix": {"workload": networks, "framework": frameworks},
    }


def ready_frameworks(platform: Platform) -> list[str]:
    """Name the frameworks that train and can be started on a platform."""
    return [name for name in training_frameworks() if is_ready(name, platform)]


def training_frameworks() -> list[str]:
    """Name the frameworks that train, each version of its own with them; strategies add none."""
    found = []
    for name in framework_names():
        info = framework_info(name)
        if "train" not in info.kinds or not info.computes:
            continue
        others = {one for one in lock_files() if one.startswith(f"{name}@")}
        of_strategies = {f"{name}@{one.environment}" for one in info.strategies.values()}
        found += [name, *sorted(others - of_strategies)]
    return found


def is_ready(name: str, platform: Platform) -> bool:
    """Tell whether a framework can be started on a platform."""
    try:
        worker_python.resolve(name, platform)
    except Unavailable:
        return False
    return True
