"""Faults planted in tinygrad's timed step: those of ``on_tinygrad.py``, and such as change less."""

from __future__ import annotations

from tests.gate.proof.planted import on_tinygrad
from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.planted.on_tinygrad import DROPPED, FOLDER, LOSS, RATE, STEP, sampled

__all__ = ["FAULTS", "FOLDER"]

WAIT = '\n\n    def sync(self) -> None:\n        """Wait for the last step."""\n'
LATE = f'self.due = True{WAIT}        if self.__dict__.pop("due", False):\n            {STEP}\n'
X, TARGET = 'self._given["x"]', 'self._given["target"]'
NARROW = '.cast("bfloat16").cast("float32")'
SLOPES = LOSS.removeprefix("slopes = ")
VELOCITY = "velocity = rule.momentum * self.moments[0][name] + slope"
SUM = 'x = body + self._row(layer.shortcut, path + "/", x, one)'
MIXED = """(1 - layer.momentum) * one.statistics[
            name
        ] + layer.momentum * batch.detach()"""
PASS = """one = Pass(self.parameters, self.statistics, self.drops and kept is None, {}, kept)
        output = self.net.run(x, one)
"""
NARROW_PASS = f"""narrow = {{name: one{NARROW} for name, one in self.parameters.items()}}
        one = Pass(narrow, self.statistics, self.drops and kept is None, {{}}, kept)
        output = self.net.run(x{NARROW}, one)
"""
FALLING = """if not changes:
                if not hasattr(self, "falling"):
                    self.falling = self.tensor(numpy.ones(1))
                changes, rate = [(self.falling, 0.9 * self.falling)], rate * self.falling
            """
TAKEN = """put(self._given["x"], array_of(given))
        put(self._given["target"], array_of(target))
"""
SECOND = "second = rule.beta2 * self.moments[1][name] + (1 - rule.beta2) * slope.square()"
FIRST = "first = rule.beta1 * self.moments[0][name] + (1 - rule.beta1) * slope"
ROOT = "root = (second / (1 - powers[1])).sqrt() + rule.epsilon"
ADAMS = "does not move as|times as far as|keeps (no|another) second"
HALVED = "the optimiser keeps another second moment of tokens/weight than its rule makes: 0.5 times"


def batch(how: str) -> Fault:
    """Step on something else than the batch."""
    return "tinycnn", "adapter.py", sampled(how), "the gradient of "


def slopes(how: str, words: str = "the gradient of ") -> Fault:
    """Update from something else than each gradient."""
    return training(SLOPES, f"[{how} for one in {SLOPES}]", words)


def training(old: str, new: str, words: str, network: str = "tinycnn") -> Fault:
    """Change a line of the step."""
    return network, "training.py", (old, new), words


def lowering(
    old: str, new: str, words: str = "the gradient of ", network: str = "tinycnn"
) -> Fault:
    """Change a line of a layer."""
    return network, "lowering.py", (old, new), words


FAULTS: dict[str, Fault] = {
    **on_tinygrad.FAULTS,
    "the last step before a sync alone": (
        "tinycnn",
        "adapter.py",
        (STEP + WAIT, LATE),
        "of two steps without a sync between them",
    ),
    "another momentum": training(
        VELOCITY, VELOCITY.replace("rule.momentum", "0.8"), "momentum is 0.8 where 0.9 is asked"
    ),
    "a momentum that looks ahead": training(
        RATE,
        RATE.replace("velocity", "(rule.momentum * velocity + slope)"),
        "does not move as the optimiser's rule says",
    ),
    "a damped momentum": training(
        VELOCITY, VELOCITY.replace("slope", "0.1 * slope"), "0.1 times what it should be"
    ),
    "a rate that falls with every step": training(
        VELOCITY,
        FALLING + VELOCITY,
        "times as far as its rate says",
    ),
    "a decay doubled": training(
        "slope + rule.weight_decay", "slope + 2 * rule.weight_decay", "weight decay is 0.0002"
    ),
    "a decay of biases and norms too": training(
        'if rule.weight_decay and name.endswith("/weight"):',
        "if rule.weight_decay:",
        "weight decay is 0.0001 where 0 is asked",
    ),
    "a loss that is maximised": training(
        LOSS, LOSS.replace("loss.", "(-loss)."), "-1 times what it should be"
    ),
    "weights kept in bf16": training(
        RATE,
        RATE.replace("weight - rate * velocity", f"(weight - rate * velocity){NARROW}"),
        "does not move as the optimiser's rule says",
    ),
    "bf16 where fp32 is asked": training(PASS, NARROW_PASS, "the gradient of "),
    "gradients in bf16": slopes(f"one{NARROW}"),
    "gradients that are 1 % too long": slopes("1.01 * one", "1.01 times what it should be"),
    "the signs of gradients": slopes("one.sign()"),
    "the last sample left out": batch(f"{X}[:-1], {TARGET}[:-1]"),
    "labels of other samples": batch(f"{X}, {TARGET}.flip(0)"),
    "labels one too high": batch(f"{X}, ({TARGET} + 1) % 10"),
    "channels in reverse order": batch(f"{X}.flip(1), {TARGET}"),
    "pictures mirrored": batch(f"{X}.flip(3), {TARGET}"),
    "pictures in bf16": batch(f"{X}{NARROW}, {TARGET}"),
    "weights that are not loaded": (
        "tinycnn",
        "adapter.py",
        ("self._trainer.load(state)", "pass"),
        "",
    ),
    "a batch that is not taken": ("tinycnn", "adapter.py", (TAKEN, "pass\n"), "the gradient of "),
    "labels smoothed": training(
        "sparse_categorical_crossentropy(target),",
        "sparse_categorical_crossentropy(target, label_smoothing=0.1),",
        "the gradient of ",
    ),
    "a batch norm by its running statistics": lowering(
        "mean = x.mean(axes)", 'mean = one.statistics[path + "/mean"]'
    ),
    "running statistics that stand still": lowering(MIXED, "one.statistics[name] * 1.0", "bn1/"),
    "running statistics that move too fast": lowering(
        MIXED, MIXED.replace("layer.momentum", "2 * layer.momentum"), "bn1/"
    ),
    "another epsilon": lowering("variance + layer.epsilon", "variance + 0.1"),
    "an average for a maximum": lowering(
        "x.max_pool2d(kernel, layer.stride, padding=_pads(site, layer.pad[0]))",
        "x.avg_pool2d(kernel, layer.stride)",
    ),
    "a shortcut without a gradient": lowering(SUM, f"{SUM}.detach()"),
    "a residual without its shortcut": lowering(SUM, "x = body"),
    "a dropout's rate halved": lowering(
        DROPPED, DROPPED.replace("rate", "rate / 2"), "drop", "dropping"
    ),
    "another first moment of Adam": training(
        FIRST, FIRST.replace("rule.beta1", "0.8"), "momentum is 0.8 where 0.9 is asked", "adam"
    ),
    "another second moment of Adam": training(
        SECOND, SECOND.replace("rule.beta2", "0.99"), ADAMS, "adam"
    ),
    "another rate of Adam": training(
        "kept - rate * (first", "kept - 2 * rate * (first", "2 times as far as", "adam"
    ),
    "another epsilon of Adam": training(ROOT, ROOT.replace("rule.epsilon", "1e-3"), ADAMS, "adam"),
    "attention that sees ahead": (
        "tinygpt",
        "sequences.py",
        ("is_causal=layer.causal", "is_causal=False"),
        "the gradient of ",
    ),
    "a second moment that is halved behind each update": training(
        "(self.moments[1][name], second),",
        "(self.moments[1][name], 0.5 * second),",
        HALVED,
        "tinygpt",
    ),
    "a count of updates that stands still": training(
        "changes += zip(self.powers, powers)",
        "pass",
        "times as far as its rate says",
        "tinygpt",
    ),
}
