"""Read which names the operations of a program that XLA compiled carry (``HloProto``).

Field numbers as in xla/service/hlo.proto and xla/xla_data.proto. XLA leaves the name of the
operation that asked for an instruction in its metadata; an instruction that XLA added has none, and
takes that of what it was fused from, else of the first that uses its result, else of what it reads.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Set, Tuple

from harness.worker.attribution.protobuf import (
    Fields,
    by_number,
    integer,
    message,
    messages,
    text,
    varint,
)

CONTAINERS = ("while", "call", "conditional")
"""Their time is that of the instructions inside."""
MOVES = ("copy", "transpose")
"""What brings a tensor into another layout."""
FREE = ("parameter", "bitcast", "reshape", "tuple", "get-tuple-element", "constant")
TYPES = {1: "bool", 2: "s8", 4: "s32", 5: "s64", 6: "u8", 8: "u32", 9: "u64"}
TYPES.update({10: "float16", 11: "float32", 12: "float64", 16: "bfloat16"})


class Instruction(NamedTuple):
    """One instruction of a program."""

    opcode: str
    op_name: str
    type: str
    shape: str
    moves_only: bool
    """Whether it brings a tensor into another layout and does nothing else."""
    is_plain_copy: bool
    """Whether it copies a tensor as it lies: XLA keeps what is to be overwritten, or is donated."""
    is_nameless: bool
    argument: str
    """Of one without a name: an argument that is read where its result is used."""


class _Raw(NamedTuple):
    name: str
    opcode: str
    op_name: str
    type: str
    shape: str
    layout: Tuple[int, ...]
    operands: Tuple[int, ...]
    called: Tuple[int, ...]


def instructions(hlo_proto: memoryview) -> Tuple[str, Dict[str, Instruction]]:
    """Give a module's name, and its instructions by theirs."""
    module = message(by_number(hlo_proto), 1)
    computations: Dict[int, Dict[int, _Raw]] = {}
    for computation in map(by_number, messages(module, 3)):
        listed = map(by_number, messages(computation, 2))
        computations[integer(computation, 5)] = {integer(one, 35): _raw(one) for one in listed}
    found: Dict[str, Instruction] = {}
    for raw in computations.values():
        users: Dict[int, List[int]] = {}
        for at, one in raw.items():
            for operand in one.operands:
                users.setdefault(operand, []).append(at)
        for at, one in raw.items():
            name = one.op_name or _inner_name(one, computations)
            found[one.name] = Instruction(
                one.opcode,
                name or _near(at, raw, users),
                one.type,
                one.shape,
                _moves_only(one, computations),
                _is_plain_copy(one, raw),
                not name,
                "" if name else _argument(at, raw, users),
            )
    return text(module, 1), found


def _raw(one: Fields) -> _Raw:
    shape = message(one, 3)
    layout = message(shape, 5)
    metadata = message(one, 7)
    return _Raw(
        text(one, 1),
        text(one, 2),
        text(metadata, 2),
        TYPES.get(integer(shape, 2), ""),
        "x".join(str(size) for size in _numbers(shape, 3)),
        tuple(_numbers(layout, 1)),
        tuple(_numbers(one, 36)),
        tuple(_numbers(one, 38)),
    )


def _numbers(found: Fields, number: int) -> List[int]:
    """Read repeated whole numbers, packed or not."""
    numbers: List[int] = []
    for value in found.get(number, []):
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            numbers.append(one)
    return numbers


def _inner_name(one: _Raw, computations: Dict[int, Dict[int, _Raw]]) -> str:
    for called in one.called:
        names = [inner.op_name for inner in computations.get(called, {}).values() if inner.op_name]
        if names:
            return names[-1]
    return ""


def _near(at: int, raw: Dict[int, _Raw], users: Dict[int, List[int]]) -> str:
    """Look along the users of a result, then along what it is made of, for a name."""
    for onwards in (lambda place: users.get(place, []), lambda place: raw[place].operands):
        seen: Set[int] = {at}
        waiting = list(onwards(at))
        while waiting:
            place = waiting.pop(0)
            if place in seen or place not in raw:
                continue
            seen.add(place)
            if raw[place].op_name and raw[place].opcode != "parameter":
                return raw[place].op_name
            waiting += onwards(place)
    return ""


def _argument(at: int, raw: Dict[int, _Raw], users: Dict[int, List[int]]) -> str:
    """Name an argument of the program that is read where a result is first used by name."""
    for user in users.get(at, []):
        if not raw[user].op_name:
            return _argument(user, raw, users)
        for operand in raw[user].operands:
            if operand in raw and raw[operand].opcode == "parameter":
                return raw[operand].op_name
    return ""


def _is_plain_copy(one: _Raw, raw: Dict[int, _Raw]) -> bool:
    read = [raw[operand].layout for operand in one.operands if operand in raw]
    return one.opcode == "copy" and read == [one.layout]


def _moves_only(one: _Raw, computations: Dict[int, Dict[int, _Raw]]) -> bool:
    if one.opcode in MOVES:
        return True
    if one.opcode != "fusion":
        return False
    inner = {each.opcode for called in one.called for each in computations.get(called, {}).values()}
    return bool(inner & set(MOVES)) and inner <= set(MOVES) | set(FREE)
