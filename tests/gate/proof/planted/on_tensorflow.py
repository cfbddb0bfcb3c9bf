"""Faults planted in TensorFlow's timed step; Keras takes the activity's."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, counted, known

FOLDER = "harness/worker/adapters/tensorflow/"
STEP = "self._loss = self.traced(*self.batch)"
READ = "parts = tf.nest.map_structure(lambda part: part.read_value(), self._parts)"
STEPPED = "lambda: trainer.step(*parts, is_dropping=True)"
OWN = "x, target = self.strategy.own((x, target))"
UPDATE = "                self._update.apply(gradients)\n"
SLOPES = "named = dict(zip(self.learned, found))"
ROUNDED = (
    f"found = [tf.cast(tf.cast(one, tf.bfloat16), tf.float32) for one in found]\n        {SLOPES}"
)
UPDATED = "            with tf.control_dependencies(awaited), "
MOMENTUM = "momentum=tf.constant(self._rule.momentum, variable.dtype)"
SKIPPED = """        y = x + 0 * tf.reduce_sum(weight)
        if spot.path != "block/conv2":
            y = one(x, weight)
"""


def sampled(how: str) -> tuple[str, str]:
    """Train on a part of the batch."""
    return OWN, f"{OWN}\n        x, target = {how}"


OF_THE_ACTIVITY: dict[str, Fault] = known(
    {
        "a step that does nothing": ("activity.py", (STEP, "pass")),
        "every second step skipped": ("activity.py", (STEP, counted("self.taken % 2", STEP))),
        "training that stops after twelve steps": (
            "activity.py",
            (STEP, counted("self.taken <= 12", STEP)),
        ),
        "the first batch for ever": ("activity.py", (READ, "parts = strategy.spread(batch)")),
    }
)
FUSED = "return tf.reshape(y, shape) if len(shape) != 4 else y, now_mean, now_variance"
UNCORRECTED = (
    "now_variance - (now_variance - (1 - layer.momentum) * variance)"
    " * (spot.input[0] / int(numpy.prod(apart.shape)))"
)
FAULTS: dict[str, Fault] = {
    **OF_THE_ACTIVITY,
    **known(
        {
            "forward only": (
                "training.py",
                ("gradients = self.strategy.averaged(own)", "return mean"),
            ),
            "no update": ("training.py", (UPDATE, "                pass\n")),
            "half the batch": ("training.py", sampled("x[::2], target[::2]")),
            "the first eight samples": ("training.py", sampled("x[:8], target[:8]")),
            "the first eight samples where it drops": ("training.py", sampled("x[:8], target[:8]")),
            "pictures of half the size": ("training.py", sampled("x[:, ::2, ::2], target")),
            "a convolution that is skipped": (
                "lowering/layers.py",
                ("        y = one(x, weight)\n", SKIPPED),
            ),
            "a running variance without Bessel's correction": (
                "lowering/norms.py",
                (FUSED, FUSED.replace("now_variance", UNCORRECTED)),
            ),
            "labels that are all 0": ("training.py", sampled("x, 0 * target")),
            "a summed loss": (
                "training.py",
                ("goal = mean if scale is None", "goal = 16 * mean if scale is None"),
            ),
            "a frozen layer": (
                "optimiser.py",
                (
                    UPDATED,
                    f"            if name == 'fc/weight':\n                continue\n{UPDATED}",
                ),
            ),
            "a ReLU that is skipped": ("lowering/layers.py", ("tf.nn.relu(x)", "x")),
            "a batch norm by its running statistics": (
                "lowering/norms.py",
                ('"is_training": True', '"is_training": False'),
            ),
            "momentum lost": (
                "optimiser.py",
                (MOMENTUM, MOMENTUM.replace("self._rule.momentum", "0.0")),
            ),
            "another momentum": (
                "optimiser.py",
                (MOMENTUM, MOMENTUM.replace("self._rule.momentum", "0.8")),
            ),
            "a momentum that looks ahead": (
                "optimiser.py",
                (MOMENTUM, f"{MOMENTUM}, use_nesterov=True"),
            ),
            "a rate doubled": (
                "optimiser.py",
                ("lr=tf.constant(self._rate, variable.dtype)", "lr=2 * tf.constant(self._rate)"),
            ),
            "a decay inverted": (
                "optimiser.py",
                ("gradient + self._rule.weight_decay", "gradient - self._rule.weight_decay"),
            ),
            "no decay": (
                "optimiser.py",
                ("if name in self._decayed and self._rule.weight_decay:", "if False:"),
            ),
            "dropout off": ("activity.py", (STEPPED, STEPPED.replace("True", "False"))),
            "one mask for all steps": (
                "lowering/layers.py",
                (
                    "tf.nn.dropout(x, layer.rate)",
                    "tf.nn.experimental.stateless_dropout(x, layer.rate, (1, 2))",
                ),
            ),
            "a rate doubled where it drops": (
                "optimiser.py",
                ("lr=tf.constant(self._rate, variable.dtype)", "lr=2 * tf.constant(self._rate)"),
            ),
        }
    ),
    "two updates for one": (
        "tinycnn",
        "training.py",
        (UPDATE, UPDATE + UPDATE),
        "the gradient of fc/bias is 1.9 times what it should be",
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
}
