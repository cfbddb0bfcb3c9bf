"""Compare the updates of what was timed with float64, and name in words what is wrong.

A moment after an update is what it was, decayed, plus the gradient (of SGD also the weight decay):
less the known parts it is the gradient, which is held to the reference's. How far weights then
moved is held to the moments that were found, so that a wrong rate is told from a wrong gradient.
What does not fit is taken apart by least squares into momentum, decay and gradient: a fault of the
optimiser leaves nothing over, and its share says which it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.exact.layer import Array
from harness.gate.proof import masks, narrow_weights
from harness.gate.proof.expected_updates import Gradients, in_order, reference, stored
from harness.gate.proof.given_back import (
    following_update,
    further_updates,
    learned,
    refuse_one_for_two,
    refuse_standstill,
    thinned_further,
    two_updates,
    updates_of,
)
from harness.gate.proof.gradient_errors import (
    TOLERANCES,
    allowed,
    gradient_error,
    is_held_closely,
    rounding,
)
from harness.gate.proof.moments import (
    Update,
    gradient_of,
    gradient_share,
    known_parts,
    movement,
    refuse_other_decay,
    refuse_other_second,
    rest_of,
)
from harness.gate.proof.request import read_start
from harness.gate.proof.running_variances import as_declared, refuse_uncorrected
from harness.gate.proof.several_ranks import Ranks
from harness.gate.proof.start import Start
from harness.gate.proof.untrained import Untrained
from harness.plan.norm_parts import norm_parts
from harness.worker.gate.tensors import Folder
from harness.worker.network.precisions import precision_of
from harness.worker.network.shapes import has_dropout
from harness.worker.network.workload import Training

_STATISTICS = 0.05
_ROUNDING = 2.0**-22
"""Of a weight, which is added to and rounded."""
_NOTHING = 1e-6
"""A gradient that is so small a share of its terms cancels to nothing."""
_LEFT = 0.1
"""Shares of momentum, decay and gradient that leave no more of a difference explain it."""


@dataclass(frozen=True)
class Proved:
    """An examination that found no fault."""

    updates: int
    error: float
    """Of a gradient, of its largest item; of narrow precisions, 1 less the smallest cosine."""
    is_exact: bool


def judge(
    workload: Training,
    precision: str,
    given: Folder,
    made: Folder,
    declared: Sequence[str] = (),
    *,
    further: Sequence[Folder] = (),
    called: str = "rank",
) -> Proved:
    """Compare each update; raise ``Untrained`` with the first fault, the plainest first.

    ``declared`` are patterns of the running variances that the framework keeps biased; ``further``
    is what ranks, or devices, made beside the first: what they are ``called``.
    """
    start = read_start(given)
    updates = updates_of(workload, start, made)
    for one in updates:
        refuse_standstill(workload, one)
    others = [
        further_updates(one, updates, f"{called} {number}")
        for number, one in enumerate(further, start=1)
    ]
    worst = 0.0
    drawn: list[Mapping[str, Array]] = []
    for number, one in enumerate(updates):
        ranks = Ranks([one, *(other[number] for other in others)], called)
        if has_dropout(workload.network):
            ranks.refuse_unlike(workload)
            drawn.append(_masks(workload, precision, start, one))
            expected = reference(workload, start, one.number, drawn[-1])
            expected = as_declared(workload, expected, start, one, declared)
        else:
            expected = as_declared(workload, stored(given, one.number), start, one, declared)
            ranks.refuse_unlike(workload, expected)
        worst = max(worst, _compare(workload, precision, start, ranks, expected))
    if drawn:
        masks.refuse_one(workload, drawn, [masks.living_of(start, one) for one in updates])
    number = updates[-1].number + 1
    is_known = precision in TOLERANCES and bool(given.under(f"gradient/{number}/"))
    known = stored(given, number) if is_known else None
    if (following := following_update(updates[-1], made, is_known=is_known)) is not None:
        _hold_following(workload, precision, following, known, len(start.batches[0]))
    two = None if precision_of(precision).is_pure else two_updates(updates, made)
    if two is not None:
        refuse_one_for_two(workload, updates[0], two, len(start.batches[0]))
    return Proved(len(updates), worst, precision in TOLERANCES)


def _masks(workload: Training, precision: str, start: Start, one: Update) -> dict[str, Array]:
    """Read the masks of the living sample."""
    lives = masks.living_of(start, one)
    found, biases = {}, masks.biases(workload)
    for path, name in masks.readers(workload).items():
        rest, terms = rest_of(workload, name, one)
        living = lives[path]
        bias = biases.get(path, "")
        of_bias = rest_of(workload, bias, one) if bias in one.before else None  # not all have one
        try:
            held = precision_of(precision).of_weights
            mask = masks.read_mask(workload, path, living, rest, terms, held, of_bias)
        except masks.WrongMask as why:
            raise Untrained(str(why)) from None
        found[path] = mask.reshape(1, *living.shape)
    return found


def _compare(
    workload: Training, precision: str, start: Start, ranks: Ranks, expected: Gradients
) -> float:
    """Hold one update to the reference; give how far off its gradients are."""
    worst, faults, one = 0.0, [], ranks.updates[0]
    batch, is_pure = len(start.batches[0]), precision_of(precision).is_pure
    for name, slope in expected.gradients.items():
        is_still = np.array_equal(one.after[name], one.before[name])
        if is_pure:
            narrow_weights.refuse_wide(workload, name, one)
            is_still = is_still and narrow_weights.moves_visibly(workload, name, one, batch)
        if is_still and float(np.max(np.abs(slope))) > _NOTHING * expected.sizes[name]:
            raise Untrained(f"{name} is not trained: update {one.number} leaves it as it was")
    most, closely = allowed(workload, precision), is_held_closely(workload)
    gradients = {name: gradient_of(workload, name, one) for name in expected.gradients}
    for name in reversed(in_order(workload, expected)):  # backward: where a fault begins
        read, kept = None, 0.0
        if is_pure:
            read = narrow_weights.legible(workload, name, one, expected)
            kept = narrow_weights.moments_off(workload, name, one, expected)
        off = gradient_error(gradients[name], expected, name, precision, read, closely=closely)
        if off > most or kept > 1:
            faults.append((name, max(off, most)))
        worst = max(worst, off)
    if faults:
        shared = ranks.sharing(workload, expected)
        shared = shared or _norms(workload, precision, start, ranks, expected)
        raise Untrained(shared or _named(workload, precision, one, expected, faults))
    rounded = rounding(workload, gradients, expected, precision, len(ranks.updates))
    if rounded is not None:
        words = f"{rounded:.0e} off each in update {one.number}"
        raise Untrained(f"gradients are rounded as half precision rounds: {words}")
    for name in in_order(workload, expected):
        _hold_rule(workload, name, one, batch, precision)
        if precision in TOLERANCES:
            refuse_other_decay(workload, name, one, batch, expected.gradients[name])
    for number, rank in enumerate(ranks.updates):
        for name, value in expected.statistics[number if start.parts > 1 else 0].items():
            right = thinned_further(value) if number else value
            moved = float(np.max(np.abs(right - rank.before[name])))
            off = float(np.max(np.abs(rank.after[name] - right))) / moved
            if off > (most if precision in TOLERANCES else _STATISTICS):
                whose = f" of {ranks.called} {number}" if number else ""
                share = f"{off:.0%}" if off >= 0.01 else f"{100 * off:.1g}%"
                words = f"{share} of its change off after update {rank.number}"
                raise Untrained(f"{name}{whose} is {words}")
    if precision in TOLERANCES and expected.statistics:
        refuse_uncorrected(workload, batch // start.parts, one, expected.statistics[0])
    return worst


def _norms(
    workload: Training, precision: str, start: Start, ranks: Ranks, expected: Gradients
) -> str | None:
    """Say of a wrong gradient whether batch norms see other parts of the batch than promised."""
    one, shares = ranks.updates[0], len(ranks.updates)
    other = norm_parts(workload, shares, sync_batch_norm=start.parts > 1)
    if other == start.parts or precision not in TOLERANCES or has_dropout(workload.network):
        return None
    right = reference(workload, replace(start, parts=other), one.number)
    most = allowed(workload, precision)
    for name in expected.gradients:
        found = gradient_of(workload, name, one)
        if gradient_error(found, right, name, precision) > most:
            return None
    if start.parts == 1:
        return f"batch norms see a {ranks.called}'s part of the batch, not all as is promised"
    return f"batch norms see the batch of all {ranks.called}s, not each its own part"


def _hold_rule(workload: Training, name: str, one: Update, batch: int, precision: str) -> None:
    """Hold what a weight moved by, and what is kept of it, to what the moments found say."""
    moved = one.before[name] - one.after[name]
    if precision_of(precision).is_pure:
        should, most = narrow_weights.movement_of(workload, name, one, batch)
    else:
        should = movement(workload, name, one, batch)
        largest = float(np.max(np.abs(should)))
        rounding = _ROUNDING * float(np.max(np.abs(one.before[name])))
        most = np.asarray(TOLERANCES["fp32"] * largest + rounding)
        refuse_other_second(workload, name, one)
    if np.all(np.abs(moved - should) <= most):
        return
    times = float(moved @ should) / float(should @ should)
    if np.all(np.abs(moved - times * should) <= most * max(1.0, abs(times))):
        raise Untrained(f"the optimiser moves {name} {times:.3g} times as far as its rate says")
    raise Untrained(f"{name} does not move as the optimiser's rule says in update {one.number}")


def _hold_following(
    workload: Training, precision: str, one: Update, expected: Gradients | None, batch: int
) -> None:
    """Hold an update that begins where one ended: it shows what is kept beside a state."""
    if expected is not None:
        for name in reversed(in_order(workload, expected)):
            off = gradient_error(gradient_of(workload, name, one), expected, name, precision)
            if off > allowed(workload, precision):
                words = "where an update follows another, and right where a state is loaded"
                raise Untrained(f"the gradient of {name} is wrong {words}: {off:.1e} off")
    for name in learned(workload, one):
        _hold_rule(workload, name, one, batch, precision)


def _named(
    workload: Training,
    precision: str,
    one: Update,
    expected: Gradients,
    faults: Sequence[tuple[str, float]],
) -> str:
    """Say what is wrong with moments: a share of momentum or decay, or the gradient itself."""
    due = [one for one in faults if expected.sizes[one[0]]]  # of nothing, nothing is a share
    for name, _ in due:
        if (share := _share(workload, precision, one, expected, name)) is None:
            continue
        # Behind a gradient that no factor explains, one that looks like a multiple is none.
        if not share[1] or name == due[0][0]:
            return share[0]
    name, off = faults[0]
    return f"the gradient of {name} is wrong: {off:.1e} off in update {one.number}"


def _share(
    workload: Training, precision: str, one: Update, expected: Gradients, name: str
) -> tuple[str, bool] | None:
    """Name the share that explains a moment, if one does, and whether it is the gradient's."""
    parts, shares, key = known_parts(workload, name, one)
    words = ["momentum", "weight decay"][: len(parts)]
    parts, shares = [*parts, expected.gradients[name]], [*shares, gradient_share(workload)]
    off = float(np.max(np.abs(one.after[key] - np.stack(parts, axis=1) @ shares)))
    most = np.full(parts[0].shape, _LEFT * off or 1.0)
    if precision_of(precision).is_pure:
        most += narrow_weights.lost(workload, name, one)
    table = np.stack(parts, axis=1) / most[:, None]
    norms = np.linalg.norm(table, axis=0)
    norms[norms == 0] = 1.0
    fitted = np.linalg.lstsq(table / norms, one.after[key] / most, rcond=None)[0] / norms
    left = float(np.max(np.abs(one.after[key] / most - table @ fitted)))
    if len(one.after[key]) <= 2 * len(parts) or left > 1:
        return None
    moved = np.abs(fitted - shares) * norms
    which = int(np.argmax(moved))
    found = float(fitted[which])
    least = 5e-4 if precision in TOLERANCES else 2e-2
    if abs(found - shares[which]) < least * abs(shares[which]):
        return None  # no share explains it
    if which == len(words):
        times = found / shares[which]
        return f"the gradient of {name} is {times:.3g} times what it should be", True
    found = found if abs(found) > _LEFT * shares[which] else 0.0
    return f"{words[which]} is {found:.3g} where {shares[which]:.3g} is asked ({name})", False
