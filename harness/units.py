"""Read quantities with units as people write them, and print them back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isinf

_QUANTITY = re.compile(r"^\s*([0-9]+(?:[.][0-9]+)?)\s*([A-Za-z%/]*)\s*$")

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def _split(text: str) -> tuple[float, str]:
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"'{text}' is not a number with a unit")
    number = float(match[1])
    if isinf(number):
        raise ValueError("a number of so many digits means nothing here")
    return number, match[2]


def seconds(text: str) -> float:
    """Read a duration such as "60 s" or "15 min"."""
    number, unit = _split(text)
    if unit not in _SECONDS:
        raise ValueError(
            f"'{text}' needs a unit of time ({', '.join(_SECONDS)}), for example \"60 s\""
        )
    return number * _SECONDS[unit]


def size_bytes(text: str) -> int:
    """Read an amount of memory such as "16 GiB"."""
    number, unit = _split(text)
    if unit not in _BYTES:
        raise ValueError(
            f"'{text}' needs a unit of size ({', '.join(_BYTES)}), for example \"16 GiB\""
        )
    return round(number * _BYTES[unit])


def bytes_per_second(text: str) -> float:
    """Read a bandwidth such as "12.5 GB/s" or, as networks are sold, "100 Gbit/s"."""
    number, unit = _split(text)
    amount, slash, per = unit.partition("/")
    if slash and per == "s":
        if amount in _BYTES:
            return number * _BYTES[amount]
        if amount.endswith("bit") and amount[:-3] in _PREFIXES:
            return number * _PREFIXES[amount[:-3]] / 8
    raise ValueError(f"'{text}' needs a unit of bandwidth, for example \"12.5 GB/s\"")


def flops(text: str) -> float:
    """Read a rate of floating-point operations such as "9.3 TFLOP/s"."""
    number, unit = _split(text)
    if not unit.endswith("FLOP/s") or unit[:-6] not in _PREFIXES:
        raise ValueError(f"'{text}' needs a unit of computing, for example \"9.3 TFLOP/s\"")
    return number * _PREFIXES[unit[:-6]]


def watts(text: str) -> float:
    """Read a power such as "300 W"."""
    number, unit = _split(text)
    if not unit.endswith("W") or unit[:-1] not in _PREFIXES:
        raise ValueError(f"'{text}' needs a unit of power, for example \"300 W\"")
    return number * _PREFIXES[unit[:-1]]


def scaled(value: float, unit: str) -> str:
    """Print a value with the prefix that keeps it short: 4.31 TFLOP/s."""
    for prefix in ("P", "T", "G", "M", "k"):
        if abs(value) >= _PREFIXES[prefix]:
            return f"{value / _PREFIXES[prefix]:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def size_text(size: int) -> str:
    """Print an amount of memory in the units in which it is round: 16 GB, 384 GiB, 1.5 TiB."""
    if size and size % 10**9 == 0:
        return f"{size // 10**9} GB"
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.4g} {unit}"
    return f"{size} B"


def decimal_size(size: int) -> str:
    """Print a size in powers of ten, as package indexes and disks do."""
    for unit, digits in (("GB", 1), ("MB", 0), ("kB", 0)):
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.{digits}f} {unit}"
    return f"{size} B"


def per_cent(share: float, places: int = 0) -> str:
    """Write a share for people."""
    return f"{share * 100:.{places}f} %"


def counted(number: int, noun: str) -> str:
    """Write "1 trial", "2 trials"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str], most: int = 3, *, between: str = ", ") -> str:
    """List a few names, and count the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def fraction(text: str) -> float:
    """Read a share such as "2 %"."""
    number, unit = _split(text)
    if unit != "%":
        raise ValueError(f"'{text}' needs a percent sign, for example \"2 %\"")
    return number / 100


def duration(length_s: float) -> str:
    """Print a duration as people say it: 40 s, 1 min 40 s, 3 h 10 min."""
    if length_s < 1:
        return f"{length_s * 1000:.0f} ms" if length_s else "0 s"
    whole = round(length_s)
    if whole < 60:
        return f"{length_s:.3g} s" if length_s < 10 else f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{round(whole / 60)} min"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
