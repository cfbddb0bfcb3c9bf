"""Rules of texts from files: how many a cell's files hold, and why a network cannot be fed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.data.catalogue import CONTENTS
from harness.data.user_data import UserData
from harness.toml.values import Value
from harness.units import counted
from harness.worker.input.dataset import UINT16
from harness.worker.input.files import samples_of
from harness.worker.network import shapes
from harness.worker.network.workload import Training
from harness.worker.scale import Scale

_LOSS = "token-cross-entropy"


def length(workload: Any) -> int | None:
    """Give how many tokens a network's samples have; None if it is fed none."""
    if not isinstance(workload, Training) or shapes.vocabulary(workload.network) is None:
        return None
    return workload.network.input[0]


def tokens(workload: Training) -> int:
    """Give the tokens of as many texts as its data set has for a network."""
    return workload.data.samples * workload.network.input[0] + 1


def sample_bytes(held: int, factors: Mapping[str, Any]) -> int:
    """Give the bytes that are read of a sample, where the files hold so many of each."""
    return held * (factors["sequence"] + 1) if factors["format"] == UINT16 else held


def why_not(
    workload: Any, factors: dict[str, Value], own: UserData | None, *, scale: Scale
) -> str | None:
    """Give the reason why a network cannot be fed from a file of tokens; None if it can."""
    each = length(workload)
    if own is not None and each is None:
        return f"{own} are for networks of texts, and {workload.name} is fed none"
    assert isinstance(workload, Training)
    if workload.loss != _LOSS:
        return (
            f"{workload.name} is asked for tokens that are masked and whether two sentences belong "
            "together, of which a file of tokens says nothing: input = synthetic"
        )
    if workload.content not in CONTENTS or not CONTENTS[workload.content].is_text:
        return f"{workload.name} names no made tokens, on which its feed would be examined"
    if factors["format"] != UINT16:
        return f"tokens are kept as {UINT16} alone, not {factors['format']}"
    if factors["shuffle"] == "file" and scale.ranks > 1:
        return f"one file of tokens cannot be shared out over {scale.ranks} ranks: shuffle = global"
    return _unfit(workload, factors, own, scale)


def _unfit(
    workload: Training, factors: dict[str, Any], own: UserData | None, scale: Scale
) -> str | None:
    """Hold the tokens to the network's vocabulary, and their number to a step."""
    known = shapes.vocabulary(workload.network)
    below = CONTENTS[workload.content].classes if own is None else own.vocabulary
    what = workload.content if own is None else own
    assert known is not None
    if below > known:
        most = known - 1
        return f"{what}: the highest token is {below - 1}, and {workload.name} knows 0 to {most}"
    there = samples_of(factors)
    if there < scale.batch_per_step:
        each = workload.network.input[0]
        texts = counted(there, "text")
        return (
            f"{factors['samples']:,} tokens make {texts} of {each} with a token behind each, "
            f"and a step takes {scale.batch_per_step}"
        )
    return None
