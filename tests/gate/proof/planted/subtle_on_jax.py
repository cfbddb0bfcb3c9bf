"""Faults planted in JAX's timed step: those of ``on_jax.py``, and such as change less."""

from __future__ import annotations

from tests.gate.proof.planted import on_jax
from tests.gate.proof.planted.fault import Fault, counted
from tests.gate.proof.planted.on_jax import FOLDER, OURS, SLOPES

__all__ = ["FAULTS", "FOLDER"]

VELOCITY = "velocity = rule.momentum * old[0] + slope"
MOVED = "return weight - rate * velocity, (velocity,)"
NARROW = "slope.astype(jnp.bfloat16).astype(slope.dtype)"
MIXED = "(1 - layer.momentum) * one.statistics[name] + layer.momentum * batch"
SUM = 'x = body + self._row(layer.shortcut, path + "/", x, one)'
MAXIMUM = "net.over_windows(x, -jnp.inf, lax.max, layer.kernel, layer.stride, pads)"
ROOT = "root = jnp.sqrt(second / (1 - rule.beta2**power)) + rule.epsilon"
SECOND = "second = rule.beta2 * old[1] + (1 - rule.beta2) * jnp.square(slope)"
FIRST = "first = rule.beta1 * old[0] + (1 - rule.beta1) * slope"
DIVIDED = "return weight - rule.rate * (first / (1 - rule.beta1**power)) / root, "
HALVED = "the optimiser keeps another second moment of tokens/weight than its rule makes: 0.5 times"
TAKEN = "self._given = self._strategy.share(self._given._replace(input=x, target=y))"
ADAMS = "does not move as|times as far as|keeps (no|another) second"


def batch(given: str, target: str = "given.target") -> Fault:
    """Step on something else than the batch."""
    change = SLOPES.replace("given,", f"Given({given}, {target}),")
    return "tinycnn", "training.py", (SLOPES, change), "the gradient of "


def training(old: str, new: str, words: str, network: str = "tinycnn") -> Fault:
    """Change a line of the step."""
    return network, "training.py", (old, new), words


def lowering(old: str, new: str, words: str = "the gradient of ") -> Fault:
    """Change a line of a layer."""
    return "tinycnn", "lowering/network.py", (old, new), words


MEAN = "return -jnp.sum(jnp.take_along_axis(logarithms, target[:, None], axis=1)) / len(whole)"
FAULTS: dict[str, Fault] = {
    **on_jax.FAULTS,
    "half the batch": batch("given.input[::2]", "given.target[::2]"),
    "half of the texts": ("tinygpt", *batch("given.input[::2]", "given.target[::2]")[1:]),
    "attention that sees ahead": (
        "tinygpt",
        "lowering/sequences.py",
        ("    if layer.causal:", "    if False:"),
        "the gradient of ",
    ),
    "the last sample left out": batch("given.input[:-1]", "given.target[:-1]"),
    "labels that are all 0": batch("given.input", "0 * given.target"),
    "labels of other samples": batch("given.input", "given.target[::-1]"),
    "labels one too high": batch("given.input", "(given.target + 1) % 10"),
    "channels in reverse order": batch("given.input[..., ::-1]"),
    "pictures mirrored": batch("given.input[:, :, ::-1]"),
    "pictures of half the size": batch("given.input[:, ::2, ::2]"),
    "pictures in bf16": batch("given.input.astype(jnp.bfloat16).astype(jnp.float32)"),
    "training that stops after twelve steps": (
        "tinycnn",
        "adapter.py",
        (OURS, counted("self.taken <= 12", OURS)),
        "changes nothing",
    ),
    "a summed loss": (
        "tinycnn",
        "losses.py",
        (MEAN, MEAN.replace(" / len(whole)", "")),
        "16 times what it should be",
    ),
    "another momentum": training(
        VELOCITY, VELOCITY.replace("rule.momentum", "0.8"), "momentum is 0.8 where 0.9 is asked"
    ),
    "a damped momentum": training(
        VELOCITY, VELOCITY.replace("slope", "0.1 * slope"), "0.1 times what it should be"
    ),
    "gradients in bf16": training(VELOCITY, VELOCITY.replace("slope", NARROW), "the gradient of "),
    "gradients that are 1 % too long": training(
        VELOCITY, VELOCITY.replace("slope", "1.01 * slope"), "1.01 times what it should be"
    ),
    "the signs of gradients": training(
        VELOCITY, VELOCITY.replace("slope", "jnp.sign(slope)"), "the gradient of "
    ),
    "a loss that is maximised": training(
        VELOCITY, VELOCITY.replace("slope", "(-slope)"), "the gradient of |weight decay is"
    ),
    "a momentum that looks ahead": training(
        MOVED,
        MOVED.replace("velocity,", "(rule.momentum * velocity + slope),", 1),
        "does not move as the optimiser's rule says",
    ),
    "a rate that falls with every step": training(
        MOVED, MOVED.replace("rate", "rate * 0.9**count"), "times as far as its rate says"
    ),
    "weights kept in bf16": training(
        MOVED,
        "moved = weight - rate * velocity\n"
        "    return moved.astype(jnp.bfloat16).astype(moved.dtype), (velocity,)",
        "does not move as the optimiser's rule says",
    ),
    "a frozen layer": training(
        MOVED,
        'return (weight if name == "fc/weight" else weight - rate * velocity), (velocity,)',
        "fc/weight is not trained",
    ),
    "no decay": training(
        "if rule.weight_decay and", "if False and", "weight decay is .* where 0.0001 is asked"
    ),
    "a decay doubled": training(
        "slope + rule.weight_decay", "slope + 2 * rule.weight_decay", "weight decay is 0.0002"
    ),
    "a decay of biases and norms too": training(
        'if rule.weight_decay and name.endswith("/weight"):',
        "if rule.weight_decay:",
        "weight decay is 0.0001 where 0 is asked",
    ),
    "labels smoothed": (
        "tinycnn",
        "losses.py",
        (MEAN, f"return 0.9 * ({MEAN[7:]}) - 0.1 * jnp.mean(logarithms)"),
        "the gradient of ",
    ),
    "bf16 where fp32 is asked": training(
        "given.input.astype(COMPUTE.get(precision, jnp.float32))",
        "given.input.astype(jnp.bfloat16)",
        "the gradient of ",
    ),
    "a shortcut without a gradient": lowering(
        SUM, SUM.replace("self._row", "lax.stop_gradient(self._row") + ")"
    ),
    "a residual without its shortcut": lowering(SUM, "x = body"),
    "an average for a maximum": lowering(
        MAXIMUM, MAXIMUM.replace("-jnp.inf, lax.max", "0.0, lax.add") + " / layer.kernel**2"
    ),
    "a batch norm by its running statistics": lowering(
        "mean = jnp.mean(wide, axes)", 'mean = one.statistics[path + "/mean"]'
    ),
    "another epsilon": lowering("variance + layer.epsilon", "variance + 0.1"),
    "running statistics that stand still": lowering(MIXED, "one.statistics[name]", "/"),
    "running statistics that move too fast": lowering(
        MIXED, "0.8 * one.statistics[name] + 0.2 * batch", "bn"
    ),
    "weights that are not loaded": (
        "tinycnn",
        "adapter.py",
        ("loaded(self._net, self._workload, self.trained, state)", "self.trained"),
        "",
    ),
    "a batch that is not taken": ("tinycnn", "adapter.py", (TAKEN, "pass"), "the gradient of "),
    "dropout that does not scale": (
        "dropping",
        "lowering/network.py",
        ("x / (1 - site.layer.rate)", "x"),
        "the gradient of |drop",
    ),
    "a dropout's rate halved": (
        "dropping",
        "lowering/network.py",
        ("bernoulli(key, 1 - site.layer.rate,", "bernoulli(key, 1 - site.layer.rate / 2,"),
        "drop",
    ),
    "another rate of Adam": training(
        "return weight - rule.rate * (first",
        "return weight - 2 * rule.rate * (first",
        ADAMS,
        "adam",
    ),
    "another first moment of Adam": training(
        FIRST, FIRST.replace("rule.beta1", "0.8"), "momentum is 0.8 where 0.9 is asked", "adam"
    ),
    "another second moment of Adam": training(
        SECOND, SECOND.replace("rule.beta2", "0.99"), ADAMS, "adam"
    ),
    "another epsilon of Adam": training(ROOT, ROOT.replace("rule.epsilon", "1e-3"), ADAMS, "adam"),
    "a second moment that is halved behind each update": training(
        f"{DIVIDED}(first, second)", f"{DIVIDED}(first, 0.5 * second)", HALVED, "tinygpt"
    ),
    "a count of updates that stands still": training(
        "statistics, moved, count, key",
        "statistics, moved, state.step, key",
        "times as far as its rate says",
        "tinygpt",
    ),
    "Adam without its correction": training(
        ROOT, ROOT.replace(" / (1 - rule.beta2**power)", ""), ADAMS, "adam"
    ),
}
