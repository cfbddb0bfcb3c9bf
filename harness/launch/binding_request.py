"""Turn a job on a platform into what the binding planner is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.launch.binding import BindingRequest, Share
from harness.platform.platform import Platform
from harness.worker.scale import Scale


def wish(
    platform: Platform,
    scale: Scale,
    factors: Mapping[str, Any],
    *,
    devices: int,
    quota: float | None = None,
) -> BindingRequest:
    """Ask for a job's ranks under a platform's policy.

    ``devices`` is how many are known, ``quota`` what a control group grants whatever the profile
    says.
    """
    binding = platform.binding
    quotas = [one for one in (platform.node.cpu_quota, quota) if one is not None]
    wants_devices = factors.get("device") == "gpu" and devices > 0
    return BindingRequest(
        ranks=scale.ranks_per_node,
        threads=factors.get("threads"),
        devices=scale.devices_per_rank if wants_devices else 0,
        observer=platform.observer.cores,
        policy=binding.policy,
        pinned=binding.threads == "pinned",
        hyper_threads=binding.hyper_threads,
        memory=factors.get("memory_policy") or binding.memory,
        oversubscribe=binding.oversubscribe,
        quota=min(quotas, default=None),
    )


def variables(
    share: Share, everybody: Sequence[Share], factors: Mapping[str, Any]
) -> dict[str, str]:
    """Give a rank's environment.

    Adapters take the accelerator with their local rank's number, so all ranks see the same list,
    each rank's own at its place; with one per process NCCL could not use the links between them.
    """
    found = dict(share.variables)
    if factors.get("device") == "cpu":
        found["BAKEOFF_DEVICES"] = ""  # what the node's GPUs do meanwhile is not this trial's
    if share.devices:
        visible = [device for one in everybody for device in one.devices]
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # or CUDA numbers them by speed
        found["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, visible))
        found["BAKEOFF_DEVICES"] = ",".join(map(str, share.devices))
    return found
