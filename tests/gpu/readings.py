"""Read `nvidia-smi` again and again: ``python -m tests.gpu.readings FILE SECONDS FIELD…``.

It runs beneath `bakeoff collect`, so that both read the same GPUs at the same time.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.gpu.answer import NotPossible
from tests.gpu.nvidia_smi import NvidiaSmi

_PAUSE_S = 0.3


def main(path: str, seconds: str, *fields: str) -> int:
    """Write every reading, and the fields that this driver does not know."""
    smi = NvidiaSmi(fields)
    end = time.monotonic() + float(seconds)
    readings = []
    try:
        while time.monotonic() < end:
            readings.append(vars(smi.read()))
            time.sleep(_PAUSE_S)
    except NotPossible as why:
        print(why, file=sys.stderr)
        return 1
    told = {"unknown": smi.unknown, "readings": readings}
    Path(path).write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
