"""The losses in torch: the mean over a batch, or the part of it that a micro-batch adds.

A micro-batch's own mean would do where all are of as many numbers: not where positions are masked,
of which one micro-batch has more than another. So its sum is divided by what the whole batch
counts.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
from torch.nn import functional

from harness.worker.network.workload import MASKED


def _mean(loss: Any, output: Any, target: torch.Tensor, count: Any, **more: Any) -> torch.Tensor:
    if count is None:
        mean: torch.Tensor = loss(output, target, **more)
        return mean
    part: torch.Tensor = loss(output, target, reduction="sum", **more) / count
    return part


def _cross_entropy(output: torch.Tensor, target: torch.Tensor, count: Any) -> torch.Tensor:
    return _mean(functional.cross_entropy, output, target, count)


def _mean_squared_error(output: torch.Tensor, target: torch.Tensor, count: Any) -> torch.Tensor:
    return _mean(functional.mse_loss, output, target, count)


def _token_cross_entropy(output: torch.Tensor, target: torch.Tensor, count: Any) -> torch.Tensor:
    flat = output.flatten(0, 1), target.flatten()
    return _mean(functional.cross_entropy, *flat, count, ignore_index=MASKED)


def _token_and_pair_cross_entropy(
    output: Tuple[torch.Tensor, torch.Tensor], target: torch.Tensor, counts: Any
) -> torch.Tensor:
    tokens, pair = output
    of_tokens, of_pair = (None, None) if counts is None else counts
    part = _cross_entropy(pair, target[:, -1], of_pair)
    return _token_cross_entropy(tokens, target[:, :-1], of_tokens) + part


def _asked(target: torch.Tensor) -> torch.Tensor:
    """Count positions that are not masked, where they lie."""
    return (target != MASKED).sum()


LOSSES: Dict[str, Callable[[Any, torch.Tensor, Any], torch.Tensor]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}
"""The mean, of an output and a target; its part where the third is what the whole batch counts."""

COUNTED: Dict[str, Callable[[torch.Tensor], Any]] = {
    "cross-entropy": len,
    "mean-squared-error": torch.numel,
    "token-cross-entropy": _asked,
    "token-and-pair-cross-entropy": lambda target: (_asked(target[:, :-1]), len(target)),
}
"""What of a batch's target the mean is taken over."""
