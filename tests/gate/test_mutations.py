"""Hold the gate to its purpose: each classic mistake is caught and named."""

from __future__ import annotations

import pytest

from tests.gate import network as gated
from tests.gate import normed
from tests.gate.conftest import Subject

pytestmark = pytest.mark.framework

TORCH = "harness/worker/adapters/torch/"
JAX = "harness/worker/adapters/jax/"
WORKLOAD = "workloads/gated.py"

# The subject of JAX keeps a copy of what it loads, and steps from its weights.
_LOADS = "        self._state = self._state._replace(\n            parameters={"
LOADED = (_LOADS, "        self._copy = jax.tree.map(jnp.array, loaded)\n" + _LOADS)
_COPIED = "{name: jnp.array(self._copy[name]) for name in self._state.parameters}"
_STEPS = "_, (self._state, _) = self._step(given)(self._state"
STALE = (_STEPS, f"{_STEPS}._replace(parameters={_COPIED})")

MISTAKES = {
    "an asymmetric pad the wrong way round": (
        "torch",
        TORCH + "lowering/network.py",
        ("(pad[0] - folded, pad[1] - folded)", "(pad[1] - folded, pad[0] - folded)"),
        "conv1: output",
    ),
    "another batch norm epsilon": (
        "torch",
        TORCH + "lowering/network.py",
        ("eps=layer.epsilon", "eps=1e-3"),
        "block/bn1: output",
    ),
    "the complement of a batch norm's momentum": (
        "torch",
        TORCH + "lowering/network.py",
        ("momentum=layer.momentum", "momentum=1 - layer.momentum"),
        "block/bn1: running mean",
    ),
    "a damped momentum": (
        "torch",
        TORCH + "training.py",
        ("momentum=rule.momentum,", "momentum=rule.momentum, dampening=rule.momentum,"),
        "the optimiser: conv1's weight after update 2",
    ),
    "a decay of biases and norms too": (
        "torch",
        TORCH + "training.py",
        ('{"params": others},', '{"params": others, "weight_decay": weight_decay},'),
        "bias after update 1 is",
    ),
    "a loss that is summed over the batch": (
        "torch",
        TORCH + "training.py",
        (
            'self.loss_of = lowering_of(LOSSES, workload.loss, "torch")',
            "self.loss_of = lambda output, target, _: LOSSES[workload.loss](output, target, 1)",
        ),
        "the loss",
    ),
    "an LRN alpha divided by the size": (
        "torch",
        TORCH + "lowering/lrn.py",
        (".mul_(alpha)", ".mul_(alpha / size)"),
        "norm1: output",
    ),
    "ResNet v1 for v1.5": (
        "torch",
        WORKLOAD,
        ("STRIDES = (1, 2)", "STRIDES = (2, 1)"),
        "block/conv1: output has shape (4, 8, 2, 2), not (4, 8, 4, 4)",
    ),
    "a max pool that rounds up": (
        "torch",
        TORCH + "lowering/network.py",
        ("ceil_mode=layer.ceil", "ceil_mode=True"),
        "pool1: output has shape (4, 8, 5, 5), not (4, 8, 4, 4)",
    ),
    "a running variance without Bessel's correction": (
        "jax",
        JAX + "lowering/network.py",
        ("variance * (count / (count - 1))", "variance"),
        "block/bn1: running variance",
    ),
    "weights from a copy made when they were loaded": (
        "jax",
        JAX + "subject.py",
        (LOADED, STALE),
        "after update 2 is",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_caught_and_named(mistake, semantics, planted) -> None:
    name, file, change, words = MISTAKES[mistake]
    finding = semantics(name, {file: change})
    planted(name, mistake, "the gate in float64", finding.differs)
    assert words in finding.differs


@pytest.mark.parametrize(
    ("mistake", "slip"),
    [
        ("another batch norm epsilon", "an epsilon of 0.001"),
        ("an LRN alpha divided by the size", "an alpha divided by the size"),
        ("a decay of biases and norms too", "a decay of biases and norms too"),
    ],
)
def test_a_usual_slip_is_named_as_what_it_is(mistake, slip, semantics) -> None:
    name, file, change, _ = MISTAKES[mistake]
    assert f"; it is what {slip} would give" in semantics(name, {file: change}).differs


@pytest.mark.parametrize("mistake", ["a damped momentum", "a decay of biases and norms too"])
def test_a_fault_of_the_optimiser_is_named_as_its_own(mistake, semantics) -> None:
    name, file, change, _ = MISTAKES[mistake]
    finding = semantics(name, {file: change})
    assert finding.differs.startswith("the optimiser: ")
    assert finding.differs.endswith("; every gradient agrees")


def test_torch_computes_what_the_definitions_say(semantics) -> None:
    finding = semantics("torch", {})
    assert finding.differs is None
    assert finding.error < 1e-11


def test_a_declared_running_variance_is_named_and_accounted_for(semantics) -> None:
    mistake = "a running variance without Bessel's correction"
    name, file, change, _ = MISTAKES[mistake]
    finding = semantics(name, {file: change}, declared=("*/variance",))
    assert finding.differs is None
    assert finding.named


def test_a_declared_variance_that_is_wrong_otherwise_still_differs(semantics) -> None:
    change = {JAX + "lowering/network.py": ("variance * (count / (count - 1))", "variance * 0.9")}
    finding = semantics("jax", change, declared=("*/variance",))
    assert "running variance" in finding.differs


def test_a_timed_lowering_stays_within_its_rounding(timed) -> None:
    finding = timed(Subject("torch"), "bf16")
    assert finding.differs is None
    assert finding.error > 1e-5


@pytest.mark.parametrize("network", [gated, normed])
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_weights_in_bf16_stay_within_their_rounding(name, network, timed) -> None:
    finding = timed(Subject(name), "bf16-pure", network)
    assert finding.differs is None
    assert finding.error > 1e-5


def test_a_dropout_that_does_not_scale_is_caught_as_timed(timed) -> None:
    change = {JAX + "lowering/network.py": ("x / (1 - site.layer.rate)", "x")}
    finding = timed(Subject("jax", change))
    assert "drop: output: what stays" in finding.differs


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_compiled_step_computes_what_the_definitions_say_in_float64(name, semantics) -> None:
    finding = semantics(name, {}, compiled=True)
    assert finding.differs is None
    assert finding.error < 1e-11


def test_a_mistake_in_the_compiled_backward_alone_is_caught(semantics) -> None:
    wrong = (
        "torch.compile("
        "lambda *given: (lambda output, loss: (output, 2 * loss - loss.detach()))(*module(*given)),"
        " backend='aot_eager', "  # without a compiler of C++, which takes long
    )
    change = {TORCH + "training.py": ("torch.compile(module, mode=self.settings.mode, ", wrong)}
    assert "fc: gradient of" in semantics("torch", change, compiled=True).differs
    assert semantics("torch", change).differs is None


def test_a_loss_whose_gradient_is_doubled_where_it_is_timed_is_caught(timed) -> None:
    doubled = (
        "loss = self.loss_of(output, target, counted)\n"
        "        if loss.dtype == torch.float32:\n"
        "            loss = 2 * loss - loss.detach()"
    )
    change = {TORCH + "training.py": ("loss = self.loss_of(output, target, counted)", doubled)}
    finding = timed(Subject("torch", change), "bf16")
    assert "the whole network: gradient of fc/weight is" in finding.differs
