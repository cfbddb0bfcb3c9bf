"""Faults planted in what TensorFlow and Keras are fed: tf.data, and batches of any loader."""

from __future__ import annotations

from tests.gate.feed.planted.feed_fault import (
    BGR,
    BLOWN_UP,
    ENCODED,
    HALF,
    MIRRORED,
    NO_LABELS,
    NOT_SCALED,
    OF_OTHERS,
    REPEATED,
    SHIFTED,
    FeedFault,
    instead,
)

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
    **instead(
        BATCHES,
        CAST,
        {
            "channels in reverse order": (cast("values[..., ::-1]"), BGR),
            "samples mirrored": (cast("values[:, :, ::-1]"), MIRRORED),
            "samples of half the size": (cast("values[:, ::2, ::2]"), HALF),
            "samples blown up": (cast(HALVED), BLOWN_UP),
        },
    ),
    **instead(BATCHES, SCALED, {"no scaling": ("values", NOT_SCALED)}),
    **instead(
        BATCHES,
        TARGETS,
        {
            "labels that are all 0": (f"{TARGETS} * 0", NO_LABELS),
            "labels one too high": (f"{TARGETS} + 1", SHIFTED),
            "labels of neighbours": (f"tf.roll({TARGETS}, 1, 0)", OF_OTHERS),
        },
    ),
    **instead(BATCHES, FETCHED, {"the first batch for ever": (FIRST, REPEATED)}),
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
    **instead(
        PIPELINE,
        DECODED,
        {
            "pictures in BGR": (f"{DECODED}[..., ::-1]", BGR),
            "pictures mirrored": (f"{DECODED}[:, ::-1]", MIRRORED),
        },
        "alexnet-chien",
        ENCODED,
    ),
    **{
        name: FeedFault(BATCHES, (SCALED, new), words, "alexnet-chien", ENCODED)
        for name, (new, words) in {
            "pictures from 0 to 255": ("values", "12..* times what they should be, plus 12"),
            "pictures from 0 to 1": (
                "values / 255.0",
                "0.. times|0.49.* times what they should be, plus 0",
            ),
        }.items()
    },
}
