"""Count what other tools' tests say of the studies that ours is held to, on the same trials.

Each rule is the tool's own as it documents it, cell by cell against the reference, at 5 %:
hyperfine's script for Welch's t-test; Google Benchmark's ``compare.py``, Mann and Whitney's U;
pyperf's ``compare_to``, Student's t-test with a pooled variance. None of them counts how many cells
are compared, and none says "same". "Plain flips" are ours without moderated variances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, ttest_ind

from harness.stats.answers import ALPHA
from harness.stats.compare import compare
from tests.stats.simulator import Array, Truth, trials

Flags = NDArray[np.bool_]
EFFECT = log(1.05)


def hyperfine(times: Array) -> Flags:
    """Tell by study and cell whether it differs; ``times``: studies by cells by blocks."""
    found: Flags = ttest_ind(times[:, 1:], times[:, :1], axis=2, equal_var=False).pvalue < ALPHA
    return found


def google_benchmark(times: Array) -> Flags:
    """Tell it as `compare.py` does."""
    reference = np.broadcast_to(times[:, :1], times[:, 1:].shape)
    found: Flags = mannwhitneyu(times[:, 1:], reference, axis=2).pvalue < ALPHA
    return found


def pyperf(times: Array) -> Flags:
    """Tell it as `compare_to` does."""
    found: Flags = ttest_ind(times[:, 1:], times[:, :1], axis=2, equal_var=True).pvalue < ALPHA
    return found


def plain_flips(times: Array) -> Flags:
    """Tell it by the largest |t| over cells in each flip of whole blocks."""
    logs = np.log(times[:, :1]) - np.log(times[:, 1:])
    blocks = logs.shape[2]
    signs = np.where(np.arange(2 ** (blocks - 1))[:, None] >> np.arange(blocks) & 1, -1.0, 1.0)
    squares = np.mean(logs**2, axis=2)[..., None]
    means = logs @ signs.T / blocks
    t = np.abs(means) / np.sqrt(np.maximum(squares - means**2, 1e-24))
    largest = t.max(axis=1, keepdims=True)
    p = (largest >= t[..., :1] * (1 - 1e-9)).mean(axis=2)
    found: Flags = p <= ALPHA
    return found


RULES: Mapping[str, Callable[[Array], Flags]] = {
    "plain": plain_flips,
    "hyperfine": hyperfine,
    "google": google_benchmark,
    "pyperf": pyperf,
}
TOOLS = ("hyperfine", "google", "pyperf")
COLUMNS = (
    *("news", *(f"{name}_news" for name in RULES)),
    *(f"{name}_as_run" for name in TOOLS),
    *("power", *(f"{name}_power" for name in RULES)),
    "same",
)
_AT_ONCE = 200


def beside(truth: Truth, studies: int, seed: int | Sequence[int] = 1) -> dict[str, float]:
    """Give the shares of studies with false news of equal cells, and of others that are found.

    The others are all 5 % faster than the reference. "As run": these tools carry the trials of one
    cell out after those of another, where ours are shuffled in blocks.
    """
    chance = np.random.default_rng(seed)
    cells = len(truth.effects)
    told = dict.fromkeys(COLUMNS, 0.0)
    for is_equal in (True, False):
        some = truth if is_equal else replace(truth, effects=(EFFECT,) * cells)
        for start in range(0, studies, _AT_ONCE):
            count = min(_AT_ONCE, studies - start)
            logs = np.stack([trials(some, chance) for _ in range(count)])
            times = np.exp(-logs)
            if is_equal:
                after = [trials(some, chance, in_blocks=False) for _ in range(count)]
                in_turn = np.exp(-np.stack(after))
                for name in TOOLS:
                    found = RULES[name](in_turn)
                    told[f"{name}_as_run"] += float(found.any(axis=1).sum()) / studies
            faster = times[:, 1:].mean(axis=2) < times[:, :1].mean(axis=2)
            for name, rule in RULES.items():
                found = rule(times)
                if is_equal:
                    told[f"{name}_news"] += float(found.any(axis=1).sum()) / studies
                else:
                    told[f"{name}_power"] += float((found & faster).sum()) / studies / cells
            for table in logs[:, 1:] - logs[:, :1]:
                rows = {str(at): list(row) for at, row in enumerate(table)}
                words = [one.answer for one in compare(rows).values()]
                if is_equal:
                    told["news"] += ("faster" in words or "slower" in words) / studies
                    told["same"] += words.count("same") / studies / cells
                else:
                    told["power"] += words.count("faster") / studies / cells
    return told
