"""What a planted fault is: a network, a source, what stands there and what is put there."""

from __future__ import annotations

from collections.abc import Mapping

Fault = tuple[str, str, tuple[str, str], str]
"""A network, a file of the adapter, the change, and the words that name the fault."""
KNOWN = {
    "a step that does nothing": ("tinycnn", "changes nothing"),
    "forward only": ("tinycnn", "changes nothing"),
    "no update": ("tinycnn", "no weight moves"),
    "every second step skipped": ("tinycnn", "changes nothing"),
    "the last step before a sync alone": ("tinycnn", "of two steps without a sync between them"),
    "the last step before a sync alone, of ranks": (
        "tinycnn",
        "of two steps without a sync between them",
    ),
    "training that stops after twelve steps": ("tinycnn", "changes nothing"),
    "the first batch for ever": ("tinycnn", "the gradient of fc/"),
    "half the batch": ("tinycnn", "the gradient of fc/"),
    "the first eight samples": ("tinycnn", "the gradient of fc/"),
    "the first eight samples where it drops": ("dropping", "reached by a gradient"),
    "pictures of half the size": ("tinycnn", "the gradient of fc/"),
    "a convolution that is skipped": ("tinycnn", "the gradient of |block/conv2/"),
    "a running variance without Bessel's correction": (
        "tinycnn",
        "is kept without Bessel's correction",
    ),
    "labels that are all 0": ("tinycnn", "the gradient of fc/"),
    "a summed loss": ("tinycnn", "the gradient of fc/bias is 16 times what it should be"),
    "a frozen layer": ("tinycnn", "fc/weight is not trained"),
    "a ReLU that is skipped": ("tinycnn", "the gradient of fc/"),
    "a batch norm by its running statistics": ("tinycnn", "the gradient of"),
    "momentum lost": ("tinycnn", "momentum is .* where 0.9 is asked"),
    "another momentum": ("tinycnn", "momentum is 0.8 where 0.9 is asked"),
    "a momentum that looks ahead": ("tinycnn", "does not move as the optimiser's rule says"),
    "a rate doubled": (
        "tinycnn",
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a rate doubled where it drops": ("dropping", "2 times as far as its rate says"),
    "a decay inverted": ("tinycnn", "weight decay is -0.0001 where 0.0001 is asked"),
    "no decay": ("tinycnn", "weight decay is .* where 0.0001 is asked"),
    "dropout off": ("dropping", "drop3 drops 0 of"),
    "one mask for all steps": ("dropping", "drops the same values at every step"),
    "gradients that are not exchanged": ("tinycnn", "not exchanged in update 1: each .* its own"),
    "gradients that are not exchanged where it drops": (
        "dropping",
        "1 is another network than .* 0 after update 1",
    ),
    "gradients that are added up, not averaged": ("tinycnn", "2 .*s are added up, not averaged"),
    "gradients that are divided twice": ("tinycnn", "2 .*s' gradients is divided once more"),
    "an average by the wrong count": (
        "tinycnn",
        "the gradient of fc/bias is 0.667 times what it should be",
    ),
    "one rank's gradient for all": ("tinycnn", "every .* moves by the gradient of .* 0 alone"),
    "gradients exchanged in fp16": ("tinycnn", "gradients are rounded as half precision rounds"),
    "gradients exchanged in bf16": ("tinycnn", "the gradient of .* is wrong"),
    "gradients exchanged in every second step": (
        "tinycnn",
        "gradients are not exchanged in update",
    ),
    "a rank that starts from other weights": (
        "tinycnn",
        "1 is another network than .* 0 after update 1",
    ),
    "ranks that are fed the same samples": (
        "tinycnn",
        "every .* moves by the gradient of .* 0 alone",
    ),
    "a rank that trains on half of its batch": ("tinycnn", "the gradient of fc/bias is wrong"),
    "a rank whose loss weighs twice": ("tinycnn", "the gradient of fc/bias is wrong"),
    "batch norms of each rank's own part": ("tinycnn", "batch norms see a rank's part of the"),
}
"""Faults of several frameworks: the network that shows each, and the words that name it."""


def known(changes: Mapping[str, tuple[str, tuple[str, str]]]) -> dict[str, Fault]:
    """Plant faults of that table: in each framework another file and another change."""
    return {
        name: (KNOWN[name][0], file, change, KNOWN[name][1])
        for name, (file, change) in changes.items()
    }


def counted(condition: str, step: str) -> str:
    """Step only where a condition on the number of steps so far holds."""
    taken = "self.taken = getattr(self, 'taken', 0) + 1"
    return f"{taken}\n            if {condition}:\n                {step}"
