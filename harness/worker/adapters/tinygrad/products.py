"""Count what tinygrad's kernels multiply, from what each is to compute before it is optimised.

tinygrad has no operator for a convolution: a kernel adds up products over ranges, and reads each
factor at an index that follows from them. A convolution or product of matrices is known by factors
of which each is read again with other values of the other one; in a norm or a pool they move
together. The gradient of what enters a convolution is computed over more places than there are,
where all factors are masked alike: of such places those count that are read.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Sequence, Set, Tuple

import numpy
from tinygrad.dtype import Invalid
from tinygrad.uop.ops import Ops

from harness.worker.facts.multiplications import Uncounted
from harness.worker.network.rule import product

SAMPLES = 2048
COMPUTED: Dict[Any, Callable[..., Any]] = {
    Ops.ADD: numpy.add,
    Ops.MUL: numpy.multiply,
    Ops.FLOORDIV: numpy.floor_divide,
    Ops.FLOORMOD: numpy.mod,
    Ops.CMPLT: numpy.less,
    Ops.CMPNE: numpy.not_equal,
    Ops.AND: numpy.logical_and,
    Ops.OR: numpy.logical_or,
    Ops.MAX: numpy.maximum,
}

Values = Mapping[Any, Any]
Ranges = FrozenSet[Any]


def macs(kernel: Any) -> int:
    """Count the multiplications of one kernel, a SINK that is not lowered yet."""
    sums = [one for one in kernel.toposort() if one.op is Ops.REDUCE and one.arg[0] is Ops.ADD]
    return sum(_multiplied(_factors(one.src[0])) for one in sums)


def _multiplied(factors: Sequence[Any]) -> int:
    """Count a sum of products; 0 where no two factors are read independently of each other."""
    ranges = _ranges(factors)
    if len(factors) < 2 or not ranges:
        return 0
    pair = next((two for two in combinations(factors, 2) if _are_independent(two, ranges)), None)
    if pair is None:
        return 0
    shared = frozenset.intersection(*map(_conditions, pair))
    groups = _joined([_ranges([one]) & ranges for one in shared])
    plain = ranges - frozenset().union(*groups)
    whole = product([_size(one) for one in plain])
    places = [_valid(group, shared) for group in groups]
    here: Dict[Any, Any] = {}
    for place in places:
        here.update({one: values[0] for one, values in place.items()})
    for place in places:
        whole *= product([_distinct(factor, {**here, **place}) for factor in pair])
    return whole


def _factors(value: Any) -> List[Any]:
    if value.op is Ops.MUL:
        return [one for half in value.src for one in _factors(half)]
    return _factors(value.src[0]) if value.op is Ops.CAST else [value]


def _ranges(values: Sequence[Any]) -> Ranges:
    """Give the ranges that values follow from, without those that they add up themselves."""
    inner: Set[Any] = set()
    found: Set[Any] = set()
    for value in values:
        for one in value.toposort():
            if one.op is Ops.REDUCE:
                inner.update(one.src[1:])
            elif one.op is Ops.RANGE:
                found.add(one)
    return frozenset(found - inner)


def _are_independent(pair: Sequence[Any], ranges: Ranges) -> bool:
    """Tell whether each of two factors is read elsewhere while the other one stays."""
    random = numpy.random.default_rng(1)
    drawn = {one: random.integers(0, _size(one), SAMPLES) for one in ranges}
    before = [_read(factor, drawn) for factor in pair]
    found = [False, False]
    for one in ranges:
        moved = {**drawn, one: random.integers(0, _size(one), SAMPLES)}
        after = [_read(factor, moved) for factor in pair]
        are_valid = before[0][1] & before[1][1] & after[0][1] & after[1][1]
        left, right = (
            (was[0] != now[0]).any(axis=0) & are_valid for was, now in zip(before, after)
        )
        found[0] |= bool((left & ~right & are_valid).any())
        found[1] |= bool((right & ~left & are_valid).any())
    return all(found)


def _read(factor: Any, values: Values) -> Tuple[Any, Any]:
    """Give where a factor is read, an index a row, and at which of the places it is read at all."""
    length = max([numpy.size(one) for one in values.values()] or [1])
    known: Dict[Any, Any] = {}
    rows = []
    are_valid = numpy.ones(length, bool)
    for one in factor.toposort():
        if one.op is Ops.INDEX:
            rows += [numpy.broadcast_to(_value(at, values, known), length) for at in one.src[1:]]
    for condition in _conditions(factor):
        are_valid = are_valid & _value(condition, values, known)
    return numpy.array(rows or [numpy.zeros(length, int)]), are_valid


def _value(one: Any, values: Values, known: Dict[Any, Any]) -> Any:
    """Compute an index at many places at once; what masks it is left out."""
    if one in values:
        return values[one]
    if one not in known:
        if one.op is Ops.CONST:
            known[one] = numpy.array(one.arg)
        elif one.op is Ops.RANGE:
            known[one] = numpy.array(0)
        elif _is_masked(one):
            known[one] = _value(one.src[1], values, known)
        elif one.op is Ops.CAST:
            known[one] = _value(one.src[0], values, known)
        elif one.op in COMPUTED:
            known[one] = COMPUTED[one.op](*(_value(each, values, known) for each in one.src))
        else:
            raise Uncounted("nothing says what tinygrad reads by '{}'".format(one.op.name))
    return known[one]


def _is_masked(one: Any) -> bool:
    return one.op is Ops.WHERE and one.src[2].op is Ops.CONST and one.src[2].arg is Invalid


def _conditions(factor: Any) -> FrozenSet[Any]:
    """Give what must hold where a factor is read, one by one; not what it adds up itself."""
    outer = _ranges([factor])
    found: Set[Any] = set()
    for one in factor.toposort():
        if _is_masked(one):
            found.update(_conjuncts(one.src[0]))
    return frozenset(one for one in found if _ranges([one]) <= outer)


def _conjuncts(condition: Any) -> List[Any]:
    if condition.op is not Ops.AND:
        return [condition]
    return [one for half in condition.src for one in _conjuncts(half)]


def _joined(sets: Sequence[Ranges]) -> List[Ranges]:
    """Join sets that have something in common."""
    groups: List[Ranges] = []
    for one in sets:
        apart = [group for group in groups if not group & one]
        groups = [*apart, reduce(frozenset.union, [g for g in groups if g & one], one)]
    return groups


def _valid(group: Ranges, conditions: FrozenSet[Any]) -> Dict[Any, Any]:
    """Give all values of some ranges at which the conditions on them hold."""
    ranges = list(group)
    grid = numpy.meshgrid(*(numpy.arange(_size(one)) for one in ranges), indexing="ij")
    values = {one: at.ravel() for one, at in zip(ranges, grid)}
    holds = numpy.ones(product([_size(one) for one in ranges]), bool)
    for condition in conditions:
        if _ranges([condition]) & group:
            holds = holds & _value(condition, values, {})
    if not holds.any():
        raise Uncounted("tinygrad masks all of a product")
    return {one: at[holds] for one, at in values.items()}


def _distinct(factor: Any, values: Values) -> int:
    return int(numpy.unique(_read(factor, values)[0], axis=1).shape[1])


def _size(one: Any) -> int:
    return int(one.vmax) + 1
