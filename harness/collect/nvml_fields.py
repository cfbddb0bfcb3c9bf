"""How NVML lays out the values of its numbered fields (nvml.h: nvmlFieldValue_t)."""

from __future__ import annotations

import struct

FORMAT = "IIqqiiQ"
"""Field, scope, time, latency, type, result, value."""
ALL_LINKS = 0xFFFFFFFF
BITS = {1: 32, 5: 31, 6: 16}
"""nvmlValueType -> after how many bits a counter of it begins again; one of 64 never gets there."""
UNSIGNED_64, UNSIGNED_32 = 3, 1
_TYPES = {0: "<d", 1: "<I", 2: "<Q", 3: "<Q", 4: "<q", 5: "<i", 6: "<H"}
"""nvmlValueType -> how the first bytes of a field's value are to be read."""


def number(kind: int, value: int) -> int:
    """Read a value, which is told as eight bytes whatever its type."""
    return int(struct.unpack_from(_TYPES[kind], value.to_bytes(8, "little"))[0])
