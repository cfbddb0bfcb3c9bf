"""Rules of networks: what of them a framework has no lowering for, as its file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.study.framework import FrameworkInfo
from harness.worker.network.layers import Conv, Network
from harness.worker.network.sequence_layers import SEQUENCE_WORDS
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Checkpointing, LayerAlone, Training


def why_not(workload: Any, info: FrameworkInfo, factors: Mapping[str, Any]) -> str | None:
    """Give the reason why a framework cannot lower a workload's network; None if it may."""
    training = workload
    if isinstance(workload, LayerAlone | Checkpointing):
        training = workload.training
    if not info.lacks or not isinstance(training, Training):
        return None
    has = {training.name, *_words(training.network)}
    for lack in info.lacks:
        is_meant = lack.device in (None, factors["device"])
        is_meant = is_meant and lack.compile in (None, bool(factors["compile"]))
        if is_meant and lack.network in has:
            return lack.why
    return None


def _words(network: Network) -> Iterator[str]:
    """Name the kinds of layers of a network, and what several of them have in common."""
    if len(network.input) > 3:
        yield "volumes"
    for site in sites(network):
        yield type(site.layer).__name__
        if isinstance(site.layer, SEQUENCE_WORDS):
            yield "sequences"
        if isinstance(site.layer, Conv) and site.layer.groups > 1:
            yield "groups"
