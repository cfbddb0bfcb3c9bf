"""Faults planted in Keras' timed step: those of ``on_keras.py``, and such as change less."""

from __future__ import annotations

from tests.gate.proof.planted import on_keras
from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.planted.on_keras import EACH, FOLDER, SGD, sampled

__all__ = ["FAULTS", "FOLDER"]

STEP = """            self._loss = self.traced(*self.batch)
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        \"\"\"Wait for the device; on a CPU the step has returned when it was done.\"\"\"
"""
LATE = STEP.replace("self._loss = self.traced(*self.batch)", "self.due = True") + (
    '        if self.__dict__.pop("due", False):\n'
    "            self._loss = self.traced(*self.batch)\n"
)
LOADED = "variable.assign(own(numpy.float32(factor) * value, variable.dtype))"
TAKEN = "tf.nest.map_structure(lambda held, part: held.assign(part), self._parts, parts)"
NARROW = "tf.cast(tf.cast({}, tf.bfloat16), tf.float32)"
RUN = 'self._output = self._run(network.layers, "", x)'
SUM = "x = self._marked(layers.Add(), path)([body, shortcut])"
NORM = "layers.BatchNormalization(momentum=1 - layer.momentum, epsilon=layer.epsilon)"
STILL = f"""    norm = {NORM}
    usual = norm.call
    norm.call = lambda x, **_: usual(x, training=False)
    return [norm]
"""
CLASSES = "return keras.losses.SparseCategoricalCrossentropy(from_logits=True, dtype=dtype, **more)"
SMOOTHED = (
    "own = keras.losses.CategoricalCrossentropy(True, label_smoothing=0.1, dtype=dtype)\n"
    "    return lambda target, output: own(ops.one_hot(target, output.shape[-1]), output)"
)
POLICY = 'POLICIES.get(str(job.factors.get("precision")), "float32")'
DROPPED = "[layers.Dropout(spot.layer.rate)]"
ADAM = "return adam(rule.rate, *betas, rule.epsilon)\n"
MOVED = (
    "        self.assign_sub(variable, first * rate / (ops.sqrt(second) + self.epsilon * root))\n"
)
CORRECTED = "rate = rate * root / (1 - ops.power(ops.cast(self.beta_1, variable.dtype), step))"
ADAMS = "does not move as|times as far as|keeps (no|another) second"
HALVED = "the optimiser keeps another second moment of tokens/weight than its rule makes: 0.5 times"


def batch(how: str) -> Fault:
    """Step on something else than the batch."""
    return "tinycnn", "on_tensorflow.py", sampled(how), "the gradient of "


def slopes(how: str, words: str) -> Fault:
    """Update from something else than each gradient."""
    each = "list(gradients.values())"
    return "tinycnn", "on_tensorflow.py", (each, f"[{how} for one in gradients.values()]"), words


def updated(then: str, words: str, network: str = "tinycnn") -> Fault:
    """Do something behind each update."""
    return network, "on_tensorflow.py", (EACH, f"{EACH}            {then}\n"), words


def training(old: str, new: str, words: str, network: str = "tinycnn") -> Fault:
    """Train by another rule."""
    return network, "training.py", (old, new), words


def layer(old: str, new: str, words: str = "the gradient of ", network: str = "tinycnn") -> Fault:
    """Write a layer otherwise."""
    return network, "layers.py", (old, new), words


FAULTS: dict[str, Fault] = {
    **on_keras.FAULTS,
    "the last step before a sync alone": (
        "tinycnn",
        "../tensorflow/activity.py",
        (STEP, LATE),
        "of two steps without a sync between them",
    ),
    "weights that are not loaded": ("tinycnn", "../tensorflow/activity.py", (LOADED, "pass"), ""),
    "a batch that is not taken": (
        "tinycnn",
        "../tensorflow/activity.py",
        (TAKEN, "pass"),
        "the gradient of ",
    ),
    "the last sample left out": batch("x[:-1], target[:-1]"),
    "labels of other samples": batch("x, target[::-1]"),
    "labels one too high": batch("x, (target + 1) % 10"),
    "channels in reverse order": batch("x[..., ::-1], target"),
    "pictures mirrored": batch("x[:, :, ::-1], target"),
    "pictures in bf16": batch(f"{NARROW.format('x')}, target"),
    "half of the texts": ("tinygpt", *batch("x[::2], target[::2]")[1:]),
    "pictures of half the size": (
        "tinycnn",
        "lowering.py",
        (RUN, RUN.replace("x)", "x[:, ::2, ::2])")),
        "the gradient of fc/",
    ),
    "a damped momentum": slopes("0.1 * one", "0.1 times what it should be"),
    "gradients in bf16": slopes(NARROW.format("one"), "the gradient of "),
    "gradients that are 1 % too long": slopes("1.01 * one", "is 1.01 times what it should be"),
    "the signs of gradients": slopes("tf.sign(one)", "the gradient of "),
    "a loss that is maximised": (
        "tinycnn",
        "on_tensorflow.py",
        ("goal = loss\n", "goal = -loss\n"),
        "-1 times what it should be",
    ),
    "weights kept in bf16": updated(
        f"[one.assign({NARROW.format('one')}) for one in self.variables]",
        "does not move as the optimiser's rule says",
    ),
    "a count of updates that stands still": updated(
        "self.optimiser.iterations.assign_sub(1)",
        "the optimiser moves .* times as far as its rate says",
        "tinygpt",
    ),
    "two updates for one": (
        "tinycnn",
        "on_tensorflow.py",
        (EACH, EACH + EACH.replace("            weights = list(self.learned.values())\n", "")),
        "the gradient of fc/bias is 1.9 times what it should be",
    ),
    "a second moment that is halved behind each update": training(
        MOVED, f"{MOVED}        self.assign(second, 0.5 * second)\n", HALVED, "tinygpt"
    ),
    "a rate that falls with every step": training(
        SGD,
        SGD.replace("rate,", "keras.optimizers.schedules.ExponentialDecay(rate, 1, 0.9),"),
        "1.11 times what it should be",  # Keras' velocity holds the rate: it is read by the next
    ),
    "a decay doubled": training(
        "gradient + self._decay",
        "gradient + 2 * self._decay",
        "weight decay is 0.0002 where 0.0001 is asked",
    ),
    "a decay of biases and norms too": training(
        "if self._decay and name in self._decayed else",
        "if self._decay else",
        "weight decay is 0.0001 where 0 is asked",
    ),
    "labels smoothed": training(CLASSES, SMOOTHED, "the gradient of "),
    "attention that sees ahead": (
        "tinygpt",
        "sequences.py",
        ("is_causal=rule.causal", "is_causal=False"),
        "the gradient of ",
    ),
    "a batch norm by its running statistics": layer(f"    return [{NORM}]\n", STILL),
    "running statistics that stand still": layer(
        NORM, NORM.replace("1 - layer.momentum", "1.0"), "bn1/"
    ),
    "running statistics that move too fast": layer(
        NORM, NORM.replace("1 - layer.momentum", "1 - 2 * layer.momentum"), "bn1/"
    ),
    "another epsilon": layer(NORM, NORM.replace("layer.epsilon", "0.1")),
    "an average for a maximum": layer(
        "layers.MaxPooling1D, layers.MaxPooling2D",
        "layers.MaxPooling1D, layers.AveragePooling2D",
    ),
    "a dropout's rate halved": layer(
        DROPPED, DROPPED.replace("rate", "rate / 2"), "drop3", "dropping"
    ),
    "dropout that does not scale": layer(
        DROPPED,
        "[layers.Dropout(spot.layer.rate), Times(1 - spot.layer.rate)]",
        "the gradient of |drop",
        "dropping",
    ),
    "a shortcut without a gradient": (
        "tinycnn",
        "lowering.py",
        (SUM, SUM.replace("shortcut]", "layers.Lambda(keras.ops.stop_gradient)(shortcut)]")),
        "the gradient of ",
    ),
    "a residual without its shortcut": (
        "tinycnn",
        "lowering.py",
        (SUM, "x = body"),
        "the gradient of ",
    ),
    "bf16 where fp32 is asked": (
        "tinycnn",
        "adapter.py",
        (POLICY, '"mixed_bfloat16"'),
        "the gradient of ",
    ),
    "AdamW without decay": training(
        '"weight_decay": decay', '"weight_decay": 0.0', "patches/weight does not move as", "tinyvit"
    ),
    "AdamW that decays biases and norms too": training(
        "if name not in self._decayed]", "if False]", "bias does not move as", "tinyvit"
    ),
    "gradients that are not clipped": training(
        '"global_clipnorm": rule.clip',
        '"global_clipnorm": None',
        "times what it should be",
        "tinyvit",
    ),
    "gradients clipped tensor by tensor": training(
        '"global_clipnorm": rule.clip',
        '"clipnorm": rule.clip',
        "times what it should be",
        "tinyvit",
    ),
    "Keras' own Adam": training(
        ADAM, ADAM.replace("adam(", "keras.optimizers.Adam("), ADAMS, "adam"
    ),
    "another rate of Adam": training(
        ADAM, ADAM.replace("rule.rate", "2 * rule.rate"), "times as far as its rate says", "adam"
    ),
    "another first moment of Adam": training(
        ADAM, ADAM.replace("*betas", "0.8, betas[1]"), "momentum is 0.8 where 0.9 is asked", "adam"
    ),
    "another second moment of Adam": training(
        ADAM, ADAM.replace("*betas", "betas[0], 0.99"), ADAMS, "adam"
    ),
    "another epsilon of Adam": training(ADAM, ADAM.replace("rule.epsilon", "1e-3"), ADAMS, "adam"),
    "Adam without its correction": training(CORRECTED, "pass", ADAMS, "adam"),
}
