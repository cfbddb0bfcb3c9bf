"""Faults planted in TensorFlow's step: those of ``on_tensorflow.py``, and such as change less."""

from __future__ import annotations

from tests.gate.proof.planted import on_tensorflow
from tests.gate.proof.planted.fault import Fault, known
from tests.gate.proof.planted.on_tensorflow import FOLDER, SLOPES, STEP, UPDATE, sampled

__all__ = ["FAULTS", "FOLDER"]

DUE = f"""{STEP}
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        \"\"\"Wait for the device; on a CPU the step has returned when it was done.\"\"\"
"""
LATE = f"""{DUE.replace(STEP, "self.due = True")}        if self.__dict__.pop("due", False):
            {STEP}
"""
GOAL = "goal = mean if scale is None"
DAMPED = "grad=gradient,\n            momentum="
DECAYED = "gradient + self._rule.weight_decay * variable"
RULE = "        return tf.raw_ops.ResourceApplyMomentum(\n"
ARGUMENTS = """            var=variable.handle,
            accum=self._slots[name][0].handle,
"""
RATE = "            lr=tf.constant(self._rate, variable.dtype),\n"
FALLING = """        rates = self.__dict__.setdefault("rates", {})
        if name not in rates:  # the function is traced twice where the first time makes variables
            with tf.init_scope():
                rates[name] = tf.Variable(self._rate / 0.9, trainable=False)
"""
FALLEN = "            lr=rates[name].assign(0.9 * rates[name]).read_value(),\n"
NARROWED = """                for one in self.learned.values():
                    one.assign(tf.cast(tf.cast(one, tf.bfloat16), one.dtype))
"""
HALVED = """                for _, second in self._update._slots.values():
                    second.assign(0.5 * second)
"""
MOVING = "exponential_avg_factor="
PASS = "        now = Pass(self.lowering.style, dict(self.values), is_dropping)\n"
NARROW_PASS = """        usual = self.lowering.style
        style = type(usual)(tf.bfloat16, usual.channels_last, usual.has_groups)
        now = Pass(style, dict(self.values), is_dropping)
        x = tf.cast(x, style.dtype)
"""
SUM = 'x = body + self._run(layer.shortcut, path + "/", now, x)'
MAXIMUM = "(tf.nn.max_pool2d, tf.nn.max_pool3d, tf.maximum)"
EACH = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)"
SMOOTHED = (
    "tf.nn.softmax_cross_entropy_with_logits("
    "labels=0.9 * tf.one_hot(target, output.shape[-1]) + 0.1 / output.shape[-1], logits=output)"
)
TAKEN = "tf.nest.map_structure(lambda held, part: held.assign(part), self._parts, parts)"
DROPPED = "tf.nn.dropout(x, layer.rate)"
BETAS = "for b in (self._rule.beta1, self._rule.beta2))"
POWERS = """self._powers[0].assign(self._powers[0] * beta1).read_value()
        power2 = self._powers[1].assign(self._powers[1] * beta2).read_value()
"""
STILL = """self._powers[0] * beta1
        power2 = self._powers[1] * beta2
"""
SECOND = "the optimiser keeps another second moment of tokens/weight than its rule makes: 0.5 times"
ADAMS = "does not move as|times as far as|keeps (no|another) second"


def batch(how: str, network: str = "tinycnn") -> Fault:
    """Step on something else than the batch."""
    return network, "training.py", sampled(how), "the gradient of "


def slopes(how: str, words: str) -> Fault:
    """Give other gradients."""
    change = f"found = [{how} for one in found]\n        {SLOPES}"
    return "tinycnn", "training.py", (SLOPES, change), words


def updated(behind: str, words: str, network: str = "tinycnn") -> Fault:
    """Do something behind each update."""
    return network, "training.py", (UPDATE, UPDATE + behind), words


def optimiser(old: str, new: str, words: str, network: str = "tinycnn") -> Fault:
    """Train by another rule."""
    return network, "optimiser.py", (old, new), words


def norm(change: tuple[str, str], words: str) -> Fault:
    """Change a number of the first batch norm."""
    named, number = change
    old = f"{named}layer."
    new = f"{named}{number} if spot.path == 'bn1' else layer."
    return "tinycnn", "lowering/norms.py", (old, new), words


def network(old: str, new: str, file: str = "network") -> Fault:
    """Change a line of the network."""
    return "tinycnn", f"lowering/{file}.py", (old, new), "the gradient of "


FAULTS: dict[str, Fault] = {
    **on_tensorflow.FAULTS,
    **known({"the last step before a sync alone": ("activity.py", (DUE, LATE))}),
    "the last sample left out": batch("x[:-1], target[:-1]"),
    "labels of other samples": batch("x, target[::-1]"),
    "labels one too high": batch("x, (target + 1) % 10"),
    "channels in reverse order": batch("x[..., ::-1], target"),
    "pictures mirrored": batch("x[:, :, ::-1], target"),
    "pictures in bf16": batch("tf.cast(tf.cast(x, tf.bfloat16), x.dtype), target"),
    "half of the texts": batch("x[::2], target[::2]", "tinygpt"),
    "a damped momentum": optimiser(
        DAMPED,
        DAMPED.replace("=gradient", "=0.1 * gradient"),
        "the gradient of fc/bias is 0.1 times what it should be",
    ),
    "gradients that are 1 % too long": slopes("1.01 * one", "is 1.01 times what it should be"),
    "the signs of gradients": slopes("tf.sign(one)", "the gradient of "),
    "a loss that is maximised": (
        "tinycnn",
        "training.py",
        (GOAL, GOAL.replace("mean", "-mean")),
        "-1 times what it should be",
    ),
    "weights kept in bf16": updated(NARROWED, "does not move as the optimiser's rule says"),
    "a rate that falls with every step": optimiser(
        RULE + ARGUMENTS + RATE,
        FALLING + RULE + ARGUMENTS + FALLEN,
        "times as far as its rate says",
    ),
    "a decay doubled": optimiser(
        DECAYED,
        DECAYED.replace("self", "2 * self"),
        "weight decay is 0.0002 where 0.0001 is asked",
    ),
    "a decay of biases and norms too": optimiser(
        "if name in self._decayed and self._rule.weight_decay:",
        "if self._rule.weight_decay:",
        "weight decay is 0.0001 where 0 is asked",
    ),
    "running statistics that stand still": norm((MOVING, "0.0"), "bn1/"),
    "running statistics that move too fast": norm((MOVING, "0.2"), "bn1/"),
    "another epsilon": norm(('"epsilon": ', "0.1"), "the gradient of "),
    "attention that sees ahead": (
        "tinygpt",
        "lowering/sequences.py",
        ("    if layer.causal:", "    if False:"),
        "the gradient of ",
    ),
    "labels smoothed": network(EACH, SMOOTHED),
    "a shortcut without a gradient": network(
        SUM, SUM.replace("self._run", "tf.stop_gradient(self._run") + ")"
    ),
    "a residual without its shortcut": network(SUM, "x = body"),
    "an average for a maximum": network(MAXIMUM, MAXIMUM.replace("max_", "avg_"), "layers"),
    "bf16 where fp32 is asked": (
        "tinycnn",
        "training.py",
        (PASS, NARROW_PASS),
        "the gradient of ",
    ),
    "weights that are not loaded": (
        "tinycnn",
        "activity.py",
        ("            if name in state:\n", "            if False:\n"),
        "momentum is 0 where 0.9 is asked",
    ),
    "a batch that is not taken": ("tinycnn", "activity.py", (TAKEN, "pass"), "the gradient of "),
    "a dropout's rate halved": (
        "dropping",
        "lowering/layers.py",
        (DROPPED, DROPPED.replace("rate", "rate / 2")),
        "drop3",
    ),
    "another rate of Adam": optimiser(
        "lr=tf.constant(self._rate, dtype)",
        "lr=tf.constant(2 * self._rate, dtype)",
        "times as far as its rate says",
        "adam",
    ),
    "another first moment of Adam": optimiser(
        BETAS,
        BETAS.replace("self._rule.beta1", "0.8"),
        "momentum is 0.8 where 0.9 is asked",
        "adam",
    ),
    "another second moment of Adam": optimiser(
        BETAS, BETAS.replace("self._rule.beta2", "0.99"), ADAMS, "adam"
    ),
    "another epsilon of Adam": optimiser(
        "epsilon = self._rule.epsilon", "epsilon = 1e-3", ADAMS, "adam"
    ),
    "a second moment that is halved behind each update": updated(HALVED, SECOND, "tinygpt"),
    "a count of updates that stands still": optimiser(
        POWERS, STILL, "the optimiser moves .* times as far as its rate says", "tinygpt"
    ),
}
