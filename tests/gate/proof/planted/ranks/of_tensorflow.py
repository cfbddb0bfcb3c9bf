"""Faults planted in how TensorFlow's ranks, and devices, train together."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, known
from tests.gate.proof.planted.on_tensorflow import FOLDER as FOLDER

AVERAGED = "made = context.all_reduce(mean, list(gradients.values()), self._options)"
MEAN = "mean = self._tf.distribute.ReduceOp.MEAN\n        context"
LOADED = "            if name in state:\n"
PART = "whole[replica * each : (replica + 1) * each]"
TAKEN = "means = {name: sums[name].take_grad(place.size) for name in self._at(where)}"
COMMUNICATES = 'joined.communicates = job.factors.get("communicate") is not False'


def averaged(how: str) -> tuple[str, tuple[str, str]]:
    """Exchange gradients in another way than averaging them."""
    return "strategies/strategies.py", (AVERAGED, how)


def rounded(kind: str) -> tuple[str, tuple[str, str]]:
    """Exchange gradients in a narrower type."""
    cast = f"[self._tf.cast(one, '{kind}') for one in gradients.values()]"
    made = AVERAGED.replace("list(gradients.values())", cast)
    return averaged(f"{made}\n        made = [self._tf.cast(one, 'float32') for one in made]")


OF_ALL = {
    "gradients that are not exchanged": averaged("made = list(gradients.values())"),
    "gradients that are not exchanged where it drops": averaged("made = list(gradients.values())"),
    "gradients that are added up, not averaged": (
        "strategies/strategies.py",
        (MEAN, MEAN.replace("MEAN", "SUM")),
    ),
    "gradients that are divided twice": averaged(
        f"{AVERAGED}\n        made = [one / 2 for one in made]"
    ),
    "an average by the wrong count": averaged(
        f"{AVERAGED}\n        made = [one * (2 / 3) for one in made]"
    ),
}
MULTIWORKER: dict[str, Fault] = known(
    {
        **OF_ALL,
        "one rank's gradient for all": averaged(
            AVERAGED.replace(
                "list(gradients.values())",
                "[2.0 * (self._place.rank == 0) * one for one in gradients.values()]",
            )
        ),
        "gradients exchanged in fp16": rounded("float16"),
        "gradients exchanged in bf16": rounded("bfloat16"),
        "a rank that starts from other weights": (
            "activity.py",
            (LOADED, LOADED.replace("state", "state and not self._trainer.strategy._place.rank")),
        ),
    }
)
MIRRORED: dict[str, Fault] = known(
    {
        **OF_ALL,
        "ranks that are fed the same samples": (
            "strategies/mirrored.py",
            (PART, "whole[:each]"),
        ),
    }
)
PARAMETER_SERVER: dict[str, Fault] = known(
    {
        "gradients that are not exchanged": (
            "strategies/joining.py",
            (COMMUNICATES, "joined.communicates = False"),
        ),
        "gradients that are added up, not averaged": (
            "strategies/serving.py",
            (TAKEN, TAKEN.replace("sums", "place.size * sums")),
        ),
        "gradients exchanged in fp16": (
            "strategies/serving.py",
            (
                TAKEN,
                TAKEN.replace("sums", "tf.cast(tf.cast(sums").replace(
                    "(place.size)", "(place.size), tf.float16), tf.float32)"
                ),
            ),
        ),
    }
)
