"""Make one pretended host sick: held back, behind a narrow cable, or with a bit turned over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.engines.hosts import Hosts
from tests.needs import framework
from tests.quota import Quota

FLIP = """
_forward = Linear.forward
_is_flipped = []
def _flipped(self, given):
    if not _is_flipped:
        _is_flipped.append(True)
        with torch.no_grad():
            bits = self.weight.view(torch.int32).view(-1)
            bits[{weight} % bits.numel()] ^= {mask}
    return _forward(self, given)
Linear.forward = _flipped
"""
"""Turns over one bit of one weight of the linear layer that is used first, once a process."""


@contextmanager
def held_back(hosts: Hosts, sick: str, cores: float) -> Iterator[None]:
    """Let a host use so much of a core."""
    quota = Quota()
    quota.allow(cores)
    quota.take(*hosts.processes(sick))
    try:
        yield
    finally:
        quota.end()


@contextmanager
def shaped(hosts: Hosts, sick: str, rate: str) -> Iterator[None]:
    """Let a host's cable carry so much."""
    hosts.shape(sick, rate)
    try:
        yield
    finally:
        hosts.unshape(sick)


@contextmanager
def flipped(hosts: Hosts, sick: str, bit: int, weight: int = 0) -> Iterator[None]:
    """Turn over a bit of a weight of whatever torch trains on a host."""
    lib = framework("torch").parents[1] / "lib"
    (linear,) = lib.glob("python3*/site-packages/torch/nn/modules/linear.py")
    mask = (1 << bit) - (1 << 32 if bit == 31 else 0)
    faulty = Path(hosts.folder) / f"linear-{sick}.py"
    faulty.write_text(linear.read_text("utf-8") + FLIP.format(weight=weight, mask=mask), "utf-8")
    hosts.run(sick, "mount", "--bind", str(faulty), str(linear))  # in its own namespace
    try:
        yield
    finally:
        hosts.run(sick, "umount", str(linear))


@dataclass(frozen=True)
class Planted:
    """A fault as it is drawn for one screen."""

    words: str
    plant: Callable[[Hosts, str], AbstractContextManager[None]]


def throttled(draw: Random) -> Planted:
    """Draw how far a control group holds a host back."""
    cores = draw.choice((0.3, 0.4, 0.5, 0.6))
    return Planted(f"{cores} of a core", lambda hosts, sick: held_back(hosts, sick, cores))


def narrow(draw: Random) -> Planted:
    """Draw what a host's cable carries."""
    rate = f"{draw.choice((100, 200, 500, 1000))}mbit"
    return Planted(rate, lambda hosts, sick: shaped(hosts, sick, rate))


def corrupt(draw: Random) -> Planted:
    """Draw which bit of which weight is turned over."""
    bit, weight = draw.randrange(32), draw.randrange(1 << 20)
    return Planted(f"bit {bit}", lambda hosts, sick: flipped(hosts, sick, bit, weight))
