"""Tell running variances without Bessel's correction from those that have it.

Of n values the correction is one part in n, far less than rounding may make of a single channel.
But it is the same part in every channel, which rounding is not: so what the found variances lack is
laid along what they would lack without the correction. Where channels scatter so much that chance
alone may lay them there, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch

import numpy as np

from harness.exact.layer import Array
from harness.gate import tolerances
from harness.gate.proof.expected_updates import Gradients
from harness.gate.proof.moments import Update
from harness.gate.proof.start import Start
from harness.gate.proof.untrained import Untrained
from harness.worker.network.layers import BatchNorm
from harness.worker.network.rule import product
from harness.worker.network.shapes import Site, sites
from harness.worker.network.workload import Training

_LACKING = 0.25
"""How far from all of the correction what lacks may be, as a share of it."""
_KNOWN = 0.1
"""A share whose standard error is larger may be chance; the channels' scatter gives the error."""
_DEVIATION = 1.4826
"""A standard deviation over the median distance, which no single channel decides."""
_MOST_VALUES = 1 << 16
"""Of more values, fp32's rounding is too near to the correction."""


def as_declared(
    workload: Training, expected: Gradients, start: Start, one: Update, declared: Sequence[str]
) -> Gradients:
    """Take Bessel's correction out of the running variances that are declared to lack it."""
    found = [dict(part) for part in expected.statistics]
    samples = len(start.batches[0]) // start.parts
    for site in sites(workload.network):
        name = f"{site.path}/variance"
        if isinstance(site.layer, BatchNorm) and any(fnmatch(name, each) for each in declared):
            for part in found:
                part[name] = without_correction(site, part[name], one.before[name], samples)
    return replace(expected, statistics=found)


def refuse_uncorrected(
    workload: Training, samples: int, one: Update, expected: Mapping[str, Array]
) -> None:
    """Refuse running variances that one update leaves without the correction.

    ``expected`` are the statistics that it should leave, ``samples`` those that a norm sees.
    """
    for site in sites(workload.network):
        name, count = f"{site.path}/variance", samples * product(site.input[1:])
        if not isinstance(site.layer, BatchNorm) or count > _MOST_VALUES:
            continue
        right = expected[name]
        lack = right - without_correction(site, right, one.before[name], samples)
        found = right - one.after[name]
        share = float(found @ lack) / float(lack @ lack)
        apart = np.abs(found - share * lack)
        scatter = _DEVIATION * float(np.median(apart)) / float(np.linalg.norm(lack))
        if abs(share - 1) < _LACKING and scatter < _KNOWN:
            raise Untrained(
                f"{name} is kept without Bessel's correction (n / (n - 1), n = {count})"
            )


def without_correction(site: Site, variance: Array, before: Array, samples: int) -> Array:
    """Give the running variance that one update leaves without the correction."""
    assert isinstance(site.layer, BatchNorm)
    return tolerances.biased_variance(
        variance,
        before,
        momentum=site.layer.momentum,
        updates=1,
        count=samples * product(site.input[1:]),
    )
