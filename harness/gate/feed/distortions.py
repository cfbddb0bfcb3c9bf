"""Name what is wrong with the numbers of a sample: what readers are known to get wrong.

What was fed is compared with every known sample after every distortion; factors and offsets of
each channel are fitted, so that a scaling or a mean that is left out has a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

from harness.gate.feed.known_samples import Array, KnownSamples, thinned

_ABOUT = 1 / 3
"""A distortion that explains so much of the difference is named, if nothing explains all of it."""
_NEAR = 1 / 2
"""Of the spread of a sample's numbers: what leaves less is that sample, made otherwise."""
_SAME = 0.01
"""Factors of channels that are closer are one; a factor as close to 1 is none."""
_COLOURS = 3

Distort = Callable[[Array], Array]


def root_mean_square(values: Array) -> Array:
    """Give the root of the mean square of each row."""
    return np.asarray(np.sqrt(np.mean(np.square(values), axis=-1)))


def name(known: KnownSamples, row: Array) -> str:
    """Say how a sample's numbers differ from those of the files; ``row`` is thinned."""
    if np.ptp(row) == 0:
        return f"every number is {row[0]:g}"
    best, least = "the numbers are those of no sample in the files", np.inf
    for words, distort in _distortions(known.shape):
        for number in range(known.spec.samples):
            expected = thinned(known, distort(known.input(number)))
            fit, left = _fitted(known, expected, row)
            if left <= known.tolerance:
                return "; ".join(filter(None, (words, _factors(known, fit))))
            is_near = left < min(least, _NEAR * float(np.std(expected)))
            if is_near and not words:
                best, least = f"the numbers are near those of sample {number}, not the same", left
            elif is_near and left < least * _ABOUT:
                best, least = f"{words}, or nearly so", left / _ABOUT
    return best


def factors(known: KnownSamples, expected: Array, rows: Array) -> str:
    """Say what samples' numbers were multiplied with, and what was added; all are thinned.

    Fitted over many samples: a decoder's own error moves the mean of one picture as far.
    """
    return _factors(known, _fitted(known, expected, rows)[0])


def _distortions(shape: tuple[int, ...]) -> Iterator[tuple[str, Distort]]:
    channels, spatial = shape[0], shape[1:]
    yield "", lambda x: x
    if channels > 1:
        what = " (BGR for RGB)" if channels == _COLOURS else ""
        yield f"the channels are exchanged: in reverse order{what}", lambda x: x[::-1]
        yield "channels-last numbers are taken for channels-first", _last_as_first
        yield "channels-first numbers are taken for channels-last", _first_as_last
    if channels == _COLOURS:
        for order in permutations(range(channels)):
            words = f"the channels are exchanged: {', '.join(map(str, order))}"
            yield words, partial(_reordered, list(order))
    if len(spatial) > 1:
        yield "left and right are exchanged", lambda x: x[..., ::-1]
        yield "samples stand upside down", lambda x: x[:, ::-1]
        if spatial[0] == spatial[1]:
            yield "rows and columns are exchanged", lambda x: np.swapaxes(x, 1, 2)
        if all(size > 1 for size in spatial):
            yield "samples are blown up from half the size", lambda x: _halved(x, _every_second)
            yield "samples are blown up from half the size", lambda x: _halved(x, _mean_of_two)
    else:
        yield "samples run backwards", lambda x: x[..., ::-1]


def _reordered(order: list[int], x: Array) -> Array:
    return x[order]


def _last_as_first(x: Array) -> Array:
    return np.moveaxis(x, 0, -1).reshape(x.shape)


def _first_as_last(x: Array) -> Array:
    return np.moveaxis(x.reshape(*x.shape[1:], x.shape[0]), -1, 0)


def _halved(x: Array, half: Callable[[Array, int], Array]) -> Array:
    for axis in range(1, x.ndim):
        size = x.shape[axis]
        x = np.repeat(half(x, axis), 2, axis).take(range(size), axis)
    return x


def _every_second(x: Array, axis: int) -> Array:
    return x.take(range(0, x.shape[axis], 2), axis)


def _mean_of_two(x: Array, axis: int) -> Array:
    size = x.shape[axis]
    following = [min(one + 1, size - 1) for one in range(0, size, 2)]
    return (_every_second(x, axis) + x.take(following, axis)) / 2


def _fitted(known: KnownSamples, expected: Array, found: Array) -> tuple[Array, float]:
    """Fit factor and offset of each channel; give what they leave, on the scale of the files."""
    each = int(np.prod(known.shape[1:]))
    channel = np.arange(found.shape[-1]) * known.step // each
    fit = np.zeros((known.shape[0], 2))
    left = np.zeros(found.shape)
    for one in range(known.shape[0]):
        own = channel == one
        x, y = expected[..., own], found[..., own]
        spread = float(np.var(x))
        factor = float(np.mean((x - x.mean()) * (y - y.mean()))) / spread if spread else 0.0
        fit[one] = factor, y.mean() - factor * x.mean()
        left[..., own] = (y - factor * x - fit[one][1]) / (factor or np.inf)
        if not factor:
            left[..., own] = np.inf
    return fit, float(root_mean_square(left.reshape(-1)))


def _factors(known: KnownSamples, fit: Array) -> str:
    """Say what was multiplied and added; nothing where nothing was."""
    most = max(_SAME, known.tolerance)  # decoders round to one side: TensorFlow's 1.3 levels
    factor, offset = fit[0]
    is_one = np.allclose(fit[:, 0], factor, rtol=_SAME, atol=0)
    if is_one and np.allclose(fit[:, 1], offset, rtol=_SAME, atol=most):
        return _factor(factor, offset, "the numbers are", most)
    each = (
        _factor(factor, offset, f"those of channel {at} are", most)
        for at, (factor, offset) in enumerate(fit.tolist())
    )
    return "the channels are not scaled alike: " + ", ".join(filter(None, each))


def _factor(factor: float, offset: float, what: str, most: float) -> str:
    is_scaled, is_moved = abs(factor - 1) > _SAME, abs(offset) > most
    if is_scaled:
        added = f", plus {offset:.3g}" if is_moved else ""
        return f"{what} {factor:.4g} times what they should be{added}"
    return f"{what} {abs(offset):.3g} too {'large' if offset > 0 else 'small'}" if is_moved else ""
