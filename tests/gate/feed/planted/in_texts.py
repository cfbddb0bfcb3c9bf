"""Faults planted in what networks of texts are fed, in each framework and in the file's windows."""

from __future__ import annotations

from collections.abc import Mapping

from tests.gate.feed.planted.feed_fault import FeedFault, instead

DATASET = "harness/worker/input/dataset.py"
TORCH = "harness/worker/adapters/torch/input/loading.py"
TENSORFLOW = "harness/worker/adapters/tensorflow/feeding.py"
JAX = "harness/worker/adapters/jax/feeding.py"
HOW = {"shuffle": "global"}
NOT_SHIFTED = "labels are not shifted"
LATE = r"a text begins \d tokens? late"
SWAPPED = "the bytes of each token are exchanged"
STARTS = "number * (length - TOKEN_BYTES)"
_TORCH = "tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()"
_PAIR = "return tokens[:, :-1], tokens[:, 1:]"
_TORCH_BYTES = "tokens = stored.view(self._dtype)"
_TF_BYTES = "tf.cast(tf.reshape(stored, [-1, self.length]), tf.int32)"
_JAX_BYTES = "stored.astype(jnp.int32)"
TURNED = "({0} % 256 * 256 + {0} // 256)"


def shifts(file: str, pair: str, first: str, second: str) -> Mapping[str, FeedFault]:
    """Plant faults where tokens become inputs and labels."""
    faults = {
        "labels not shifted": (pair.replace(second, first), NOT_SHIFTED),
        "texts one token late": (pair.replace(first, second), LATE),
        "labels of other texts": (pair.replace(second, f"{second}[[1, 0, 3, 2]]"), "other texts"),
    }
    if file != TORCH:  # tensors of TensorFlow take no list
        faults.pop("labels of other texts")
    return instead(file, pair, faults, "tinygpt", HOW)


def byte_order(file: str, read: str) -> Mapping[str, FeedFault]:
    """Plant the other order of the bytes."""
    fault = {"bytes in the other order": (TURNED.format(read), SWAPPED)}
    return instead(file, read, fault, "tinygpt", HOW)


WINDOWS = instead(
    DATASET,
    STARTS,
    {
        "texts that do not join": ("number * length", LATE),
        "texts that overlap": (f"{STARTS} // 2", "a text begins 32 tokens late"),
    },
    "tinygpt",
    HOW,
)
ON_TORCH = {
    **shifts(TORCH, _TORCH, "tokens[:, :-1].contiguous()", "tokens[:, 1:].contiguous()"),
    **instead(
        TORCH,
        _TORCH_BYTES,
        {
            "bytes in the other order": (
                _TORCH_BYTES.replace(
                    "stored.", "stored.reshape(-1, 2).flip(1).reshape(stored.shape)."
                ),
                SWAPPED,
            )
        },
        "tinygpt",
        HOW,
    ),
}
ON_TENSORFLOW = {
    **shifts(TENSORFLOW, _PAIR, "tokens[:, :-1]", "tokens[:, 1:]"),
    **byte_order(TENSORFLOW, _TF_BYTES),
}
ON_JAX = {
    **shifts(JAX, _PAIR, "tokens[:, :-1]", "tokens[:, 1:]"),
    **byte_order(JAX, _JAX_BYTES),
}
