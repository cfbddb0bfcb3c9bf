"""Hold the proof of what was timed to its purpose: each planted fault is caught and named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from harness.gate.proof.judging import Untrained
from tests.gate.proof import dropping
from workloads import tinycnn

pytestmark = pytest.mark.framework

TORCH = "harness/worker/adapters/torch/"
JAX = "harness/worker/adapters/jax/"
NETWORKS = {"tinycnn": tinycnn, "dropping": dropping}

STEP = "self._loss = self.trainer.step(*self.batch)"
UPDATE = "            loss.backward()\n            self.optimiser.step()\n"
NETWORK = "        self.network.train()\n"
SGD = "torch.optim.SGD(groups, lr=rate, momentum=rule.momentum, fused=True)"


def counted(condition: str, step: str = STEP) -> str:
    """Step only where a condition on the number of steps so far holds."""
    taken = "self.taken = getattr(self, 'taken', 0) + 1"
    return f"{taken}\n            if {condition}:\n                {step}"


MEMOISED = """            if not hasattr(self, "held"):
                loss.backward()
                self.held = [p.grad.clone() for p in self.network.parameters()]
            for p, slope in zip(self.network.parameters(), self.held):
                p.grad = slope.clone()
            self.optimiser.step()
"""
ON_TORCH = {
    "a step that does nothing": ("tinycnn", "activity.py", (STEP, "pass"), "changes nothing"),
    "forward only": (
        "tinycnn",
        "training.py",
        (UPDATE, "            pass\n"),
        "no weight moves in update 1",
    ),
    "no update": (
        "tinycnn",
        "training.py",
        (UPDATE, "            loss.backward()\n"),
        "no weight moves",
    ),
    "every second step skipped": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken % 2")),
        "changes nothing",
    ),
    "training that stops after twelve steps": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken <= 12")),
        "changes nothing",
    ),
    "half the batch": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[::2] for one in self.batch)")),
        "the gradient of fc/",
    ),
    "the first eight samples": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
        "the gradient of fc/",
    ),
    "the first eight samples where it drops": (
        "dropping",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "*(one[:8] for one in self.batch)")),
        "reached by a gradient",
    ),
    "pictures of half the size": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "self.batch[0][:, :, ::2, ::2], self.batch[1]")),
        "the gradient of fc/",
    ),
    "labels that are all 0": (
        "tinycnn",
        "activity.py",
        (STEP, STEP.replace("*self.batch", "self.batch[0], 0 * self.batch[1]")),
        "the gradient of fc/",
    ),
    "a memoised forward": ("tinycnn", "training.py", (UPDATE, MEMOISED), "the gradient of "),
    "a summed loss": (
        "tinycnn",
        "training.py",
        (UPDATE, UPDATE.replace("loss.backward()", "(16 * loss).backward()")),
        "the gradient of fc/bias is 16 times what it should be",
    ),
    "a frozen layer": (
        "tinycnn",
        "training.py",
        (NETWORK, NETWORK + "        self.network.at['fc'].weight.requires_grad_(False)\n"),
        "fc/weight is not trained",
    ),
    "a ReLU that is skipped": (
        "tinycnn",
        "lowering/network.py",
        ("nn.ReLU(inplace=in_place)", "nn.Identity()"),
        "the gradient of fc/",
    ),
    "a batch norm by its running statistics": (
        "tinycnn",
        "training.py",
        (NETWORK, NETWORK.replace("train()", "eval()")),
        "the gradient of",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.0")),
        "the optimiser keeps no velocity",
    ),
    "a damped momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("fused", "dampening=0.9, fused")),
        "the gradient of fc/bias is 0.1 times what it should be",
    ),
    "another momentum": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("rule.momentum", "0.8")),
        "momentum is 0.8 where 0.9 is asked",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        (SGD, SGD.replace("lr=rate", "lr=2 * rate")),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ('"weight_decay": weight_decay}', '"weight_decay": -weight_decay}'),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "no decay": (
        "tinycnn",
        "training.py",
        ("if not weight_decay:", "if True:"),
        "weight decay is .* where 0.0001 is asked",
    ),
    "dropout off": (
        "dropping",
        "training.py",
        (NETWORK, NETWORK + "        self.network.at['drop3'].eval()\n"),
        "drop3 drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "activity.py",
        (STEP, "torch.manual_seed(0)\n            " + STEP),
        "drops the same values at every step",
    ),
    "a rate doubled where it drops": (
        "dropping",
        "training.py",
        (SGD, SGD.replace("lr=rate", "lr=2 * rate")),
        "2 times as far as its rate says",
    ),
}
OURS = "self.trained, self._loss = self._step(self.trained, self._given)"
SLOPES = "slopes(net, workload, precision, state, given, draw)"
ON_JAX = {
    "a step that does nothing": ("tinycnn", "adapter.py", (OURS, "self._loss = 0.0"), "nothing"),
    "every second step skipped": (
        "tinycnn",
        "adapter.py",
        (OURS, counted("self.taken % 2", OURS)),
        "changes nothing",
    ),
    "the first eight samples": (
        "tinycnn",
        "training.py",
        (SLOPES, SLOPES.replace("given,", "Given(given.input[:8], given.target[:8]),")),
        "the gradient of fc/",
    ),
    "no update": (
        "tinycnn",
        "training.py",
        ("return weight - rate * velocity, (velocity,)", "return weight, (velocity,)"),
        "no weight moves",
    ),
    "momentum lost": (
        "tinycnn",
        "training.py",
        ("velocity = rule.momentum * old[0] + slope", "velocity = slope"),
        "momentum is .* where 0.9 is asked",
    ),
    "a rate doubled": (
        "tinycnn",
        "training.py",
        ("return weight - rate * velocity", "return weight - 2 * rate * velocity"),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "training.py",
        ("slope + rule.weight_decay * weight", "slope - rule.weight_decay * weight"),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "a ReLU that is skipped": (
        "tinycnn",
        "lowering.py",
        ("jax.nn.relu(x)", "x"),
        "the gradient of fc/",
    ),
    "dropout off": (
        "dropping",
        "training.py",
        ("jax.random.split(state.key) if has_dropout else (state.key, None)", "state.key, None"),
        "drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "training.py",
        ("moved, count, key, state.scale)", "moved, count, state.key, state.scale)"),
        "drops the same values at every step",
    ),
}


IN_CI = {
    "a step that does nothing",
    "every second step skipped",
    "the first eight samples",
    "a memoised forward",
    "momentum lost",
    "dropout off",
}


def some_in_ci(faults: Iterable[str]) -> list[Any]:
    """Leave most faults to the long form: each takes a worker of its own."""
    return [
        fault if fault in IN_CI else pytest.param(fault, marks=pytest.mark.long) for fault in faults
    ]


@pytest.mark.parametrize("fault", some_in_ci(ON_TORCH))
def test_a_fault_of_the_timed_step_is_caught_and_named_in_torch(fault, prove) -> None:
    network, file, change, words = ON_TORCH[fault]
    with pytest.raises(Untrained, match=words):
        prove("torch", NETWORKS[network], {TORCH + file: change})


@pytest.mark.parametrize("fault", some_in_ci(ON_JAX))
def test_a_fault_of_the_timed_step_is_caught_and_named_in_jax(fault, prove) -> None:
    network, file, change, words = ON_JAX[fault]
    with pytest.raises(Untrained, match=words):
        prove("jax", NETWORKS[network], {JAX + file: change})


def test_a_sync_that_does_not_wait_is_refused(prove) -> None:
    wait = "self._jax.block_until_ready((self.trained, self._loss))"
    with pytest.raises(AssertionError, match="sync returned before the steps were done"):
        prove("jax", tinycnn, {JAX + "adapter.py": (wait, "pass")})


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_trains_is_proved(name, network, seed, prove) -> None:
    found = prove(name, NETWORKS[network], seed=seed)
    assert found.updates == 3
    assert found.error < 1e-3


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_what_trains_in_bf16_points_where_float64_does(name, prove) -> None:
    found = prove(name, tinycnn, precision="bf16")
    assert not found.is_exact
    assert found.error < 0.1


def test_in_bf16_a_fault_of_the_optimiser_is_as_plain_as_in_fp32(prove) -> None:
    change = {TORCH + "training.py": (SGD, SGD.replace("lr=rate", "lr=2 * rate"))}
    with pytest.raises(Untrained, match=re.escape("2 times as far as its rate says")):
        prove("torch", tinycnn, change, precision="bf16")
