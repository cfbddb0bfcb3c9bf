"""Faults planted in TensorFlow's timed step; Keras takes the activity's."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted

FOLDER = "harness/worker/adapters/tensorflow/"
STEP = "self._loss = self.traced(*self.batch)"
READ = "parts = tf.nest.map_structure(lambda part: part.read_value(), self._parts)"
STEPPED = "lambda: trainer.step(*parts, is_dropping=True)"
OWN = "x, target = self.strategy.own((x, target))"
UPDATE = "            self._update.apply(gradients)\n"
SLOPES = "named = dict(zip(self.learned, found))"
ROUNDED = (
    f"found = [tf.cast(tf.cast(one, tf.bfloat16), tf.float32) for one in found]\n        {SLOPES}"
)
UPDATED = "            with tf.control_dependencies(awaited):\n"
MOMENTUM = "momentum=tf.constant(self._rule.momentum, variable.dtype)"


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return OWN, f"{OWN}\n        x, target = {how}"


OF_THE_ACTIVITY: dict[str, Fault] = {
    "a step that does nothing": ("tinycnn", "activity.py", (STEP, "pass"), "changes nothing"),
    "every second step skipped": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken % 2", STEP)),
        "changes nothing",
    ),
    "training that stops after twelve steps": (
        "tinycnn",
        "activity.py",
        (STEP, counted("self.taken <= 12", STEP)),
        "changes nothing",
    ),
    "the first batch for ever": (
        "tinycnn",
        "activity.py",
        (READ, "parts = strategy.spread(batch)"),
        "the gradient of fc/",
    ),
}
FAULTS: dict[str, Fault] = {
    **OF_THE_ACTIVITY,
    "forward only": (
        "tinycnn",
        "training.py",
        ("gradients = self.strategy.averaged(own)", "return mean"),
        "changes nothing",
    ),
    "no update": ("tinycnn", "training.py", (UPDATE, "            pass\n"), "no weight moves"),
    "two updates for one": (
        "tinycnn",
        "training.py",
        (UPDATE, UPDATE + UPDATE),
        "the gradient of fc/bias is 1.9 times what it should be",
    ),
    "half the batch": (
        "tinycnn",
        "training.py",
        sampled("x[::2], target[::2]"),
        "the gradient of fc/",
    ),
    "the first eight samples": (
        "tinycnn",
        "training.py",
        sampled("x[:8], target[:8]"),
        "the gradient of fc/",
    ),
    "the first eight samples where it drops": (
        "dropping",
        "training.py",
        sampled("x[:8], target[:8]"),
        "reached by a gradient",
    ),
    "pictures of half the size": (
        "tinycnn",
        "training.py",
        sampled("x[:, ::2, ::2], target"),
        "the gradient of fc/",
    ),
    "labels that are all 0": (
        "tinycnn",
        "training.py",
        sampled("x, 0 * target"),
        "the gradient of fc/",
    ),
    "a summed loss": (
        "tinycnn",
        "training.py",
        ("goal = mean if scale is None", "goal = 16 * mean if scale is None"),
        "the gradient of fc/bias is 16 times what it should be",
    ),
    "gradients in bf16": (
        "tinycnn",
        "training.py",
        (
            SLOPES,
            ROUNDED,
        ),
        "the gradient of ",
    ),
    "a frozen layer": (
        "tinycnn",
        "optimiser.py",
        (UPDATED, f"            if name == 'fc/weight':\n                continue\n{UPDATED}"),
        "fc/weight is not trained",
    ),
    "a ReLU that is skipped": (
        "tinycnn",
        "lowering/layers.py",
        ("tf.nn.relu(x)", "x"),
        "the gradient of fc/",
    ),
    "a batch norm by its running statistics": (
        "tinycnn",
        "lowering/layers.py",
        ('"is_training": True', '"is_training": False'),
        "the gradient of",
    ),
    "momentum lost": (
        "tinycnn",
        "optimiser.py",
        (MOMENTUM, MOMENTUM.replace("self._rule.momentum", "0.0")),
        "momentum is .* where 0.9 is asked",
    ),
    "another momentum": (
        "tinycnn",
        "optimiser.py",
        (MOMENTUM, MOMENTUM.replace("self._rule.momentum", "0.8")),
        "momentum is 0.8 where 0.9 is asked",
    ),
    "a momentum that looks ahead": (
        "tinycnn",
        "optimiser.py",
        (MOMENTUM, f"{MOMENTUM}, use_nesterov=True"),
        "does not move as the optimiser's rule says",
    ),
    "a rate doubled": (
        "tinycnn",
        "optimiser.py",
        ("lr=tf.constant(self._rate, variable.dtype)", "lr=2 * tf.constant(self._rate)"),
        "the optimiser moves conv1/weight 2 times as far as its rate says",
    ),
    "a decay inverted": (
        "tinycnn",
        "optimiser.py",
        ("gradient + self._rule.weight_decay", "gradient - self._rule.weight_decay"),
        "weight decay is -0.0001 where 0.0001 is asked",
    ),
    "no decay": (
        "tinycnn",
        "optimiser.py",
        ("if name in self._decayed and self._rule.weight_decay:", "if False:"),
        "weight decay is .* where 0.0001 is asked",
    ),
    "dropout off": (
        "dropping",
        "activity.py",
        (STEPPED, STEPPED.replace("True", "False")),
        "drop3 drops 0 of",
    ),
    "one mask for all steps": (
        "dropping",
        "lowering/layers.py",
        (
            "tf.nn.dropout(x, layer.rate)",
            "tf.nn.experimental.stateless_dropout(x, layer.rate, (1, 2))",
        ),
        "drops the same values at every step",
    ),
    "a rate doubled where it drops": (
        "dropping",
        "optimiser.py",
        ("lr=tf.constant(self._rate, variable.dtype)", "lr=2 * tf.constant(self._rate)"),
        "2 times as far as its rate says",
    ),
}
