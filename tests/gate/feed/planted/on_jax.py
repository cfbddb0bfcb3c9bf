"""Faults planted in what JAX is fed."""

from __future__ import annotations

from tests.gate.feed.planted.feed_fault import FeedFault, instead, known

BATCHES = "harness/worker/adapters/jax/feeding.py"
SCALED = "values.astype(jnp.float32) / scale"
TARGETS = "self._targets[list(batch.samples)]"
NEXT = "batch = self.epochs.next()\n"
FIRST = f"""{NEXT}        if not self.epochs._number and self.epochs.left() == 2:
            self._first = batch._replace(data=[bytes(one) for one in batch.data])
        batch = self._first
"""
COPIED = "numpy.stack([numpy.frombuffer(one, self._kind) for one in batch.data])"
HALVED = "jnp.repeat(jnp.repeat(values[:, ::2, ::2], 2, 1), 2, 2)"


def values(how: str) -> str:
    """Do something to numbers before they are scaled; they are channels last."""
    return SCALED.replace("values", how)


FAULTS: dict[str, FeedFault] = {
    **known(
        BATCHES,
        SCALED,
        {
            "channels in reverse order": values("values[..., ::-1]"),
            "no scaling": "values.astype(jnp.float32)",
            "samples mirrored": values("values[:, :, ::-1]"),
            "samples of half the size": values("values[:, ::2, ::2]"),
            "samples blown up": values(HALVED),
        },
    ),
    **known(
        BATCHES,
        TARGETS,
        {
            "labels that are all 0": f"0 * {TARGETS}",
            "labels one too high": f"1 + {TARGETS}",
            "labels of neighbours": f"numpy.roll({TARGETS}, 1)",
        },
    ),
    **known(BATCHES, NEXT, {"the first batch for ever": FIRST}),
    **instead(
        BATCHES,
        COPIED,
        {"bytes swapped": (f"{COPIED}.byteswap()", "those of no sample in the files")},
        "neuron-inverter",
    ),
}
