"""Turn integer pads into what TensorFlow runs fastest: SAME, or a pad before VALID.

``explicit_paddings`` is never used: on a CPU it left oneDNN's fast path and was 8 to 40 times
slower for max-pools and bfloat16 convolutions, where a separate pad costs a few per cent.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

Pad = Tuple[int, int]


class Padding(NamedTuple):
    """What to pad each spatial dimension with first, and the word for the operation itself."""

    first: Tuple[Pad, ...]
    word: str

    @property
    def is_explicit(self) -> bool:
        """Say whether a pad operation is needed at all."""
        return any(pad != (0, 0) for pad in self.first)


def padding(
    kernel: int, stride: int, before: int, inputs: Sequence[int], outputs: Sequence[int]
) -> Padding:
    """Choose the form that gives ``outputs`` windows, the first starting ``before`` the input.

    The pad after is what the last window reaches, which may be less than was stated (a row that no
    window touches) or more (a pool that rounds up).
    """
    pads = tuple(
        (before, max((count - 1) * stride + kernel - before - size, 0))
        for size, count in zip(inputs, outputs)
    )
    nothing = tuple((0, 0) for _ in pads)
    if pads == nothing:
        return Padding(nothing, "VALID")
    if pads == tuple(same(kernel, stride, size) for size in inputs) and all(
        count == -(-size // stride) for size, count in zip(inputs, outputs)
    ):
        return Padding(nothing, "SAME")
    return Padding(pads, "VALID")


def same(kernel: int, stride: int, size: int) -> Pad:
    """Say what TensorFlow's SAME pads: to ceil(size / stride) windows, the odd cell after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
