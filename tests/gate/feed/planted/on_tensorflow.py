"""Faults planted in what TensorFlow and Keras are fed: tf.data, and batches of any loader."""

from __future__ import annotations

from tests.gate.feed.planted.feed_fault import ENCODED, FeedFault, instead, known

BATCHES = "harness/worker/adapters/tensorflow/feeding.py"
PIPELINE = "harness/worker/adapters/tensorflow/loading.py"
CAST = "values = tf.cast(tf.reshape(values, self._sample), tf.float32)"
SCALED = "values / MIDDLE - 1.0 if self.is_decoded else values / self._scale"
TARGETS = "tf.gather(self._targets, samples)"
FETCHED = "read = self.epochs.next()\n"
FIRST = f"{FETCHED}        if self.epochs._number or self.epochs.left() != 2:\n            return\n"
SHUFFLED = "records.shuffle(self._files.buffer_samples, seed=seed)"
DECODED = "picture = tf.image.decode_jpeg(stored, channels=3)"
CHANCE = "__import__('random').SystemRandom().randrange(9**9)"
TWICE = "tf.data.Dataset.from_tensors(one).repeat(2)"
HALVED = "tf.repeat(tf.repeat(values[:, ::2, ::2], 2, 1), 2, 2)"


def cast(how: str) -> str:
    """Do something to numbers before they are scaled; they are channels last."""
    return f"{CAST}\n        values = {how}"


FAULTS: dict[str, FeedFault] = {
    **known(
        BATCHES,
        CAST,
        {
            "channels in reverse order": cast("values[..., ::-1]"),
            "samples mirrored": cast("values[:, :, ::-1]"),
            "samples of half the size": cast("values[:, ::2, ::2]"),
            "samples blown up": cast(HALVED),
        },
    ),
    **known(BATCHES, SCALED, {"no scaling": "values"}),
    **known(
        BATCHES,
        TARGETS,
        {
            "labels that are all 0": f"{TARGETS} * 0",
            "labels one too high": f"{TARGETS} + 1",
            "labels of neighbours": f"tf.roll({TARGETS}, 1, 0)",
        },
    ),
    **known(BATCHES, FETCHED, {"the first batch for ever": FIRST}),
    **instead(
        PIPELINE,
        SHUFFLED,
        {
            "a shuffle without a seed": (
                SHUFFLED.replace("seed=seed", f"seed={CHANCE}"),
                "the same seed gives another order each time",
            ),
            "records fed twice": (f"records.flat_map(lambda *one: {TWICE})", "twice|too many"),
        },
        factors={"format": "tfrecord", "shuffle": "file"},
    ),
    **known(
        PIPELINE,
        DECODED,
        {
            "pictures in BGR": f"{DECODED}[..., ::-1]",
            "pictures mirrored": f"{DECODED}[:, ::-1]",
        },
        "alexnet-chien",
        ENCODED,
    ),
    **instead(
        BATCHES,
        SCALED,
        {
            "pictures from 0 to 255": ("values", "12..* times what they should be, plus 12"),
            "pictures from 0 to 1": (
                "values / 255.0",
                "0.. times|0.49.* times what they should be, plus 0",
            ),
        },
        "alexnet-chien",
        ENCODED,
    ),
}
