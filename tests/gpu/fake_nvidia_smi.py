"""A stand-in for `nvidia-smi`: it answers as the NVML stub does, in nvidia-smi's own format.

FAKE_SMI_UNKNOWN names fields, separated by commas, that it refuses as drivers before them do.
FAKE_SMI_WRONG=FIELD=VALUE makes it say something else.
"""

import os
import sys

OPTION = "--query-gpu="


def answers(index):
    return {
        "uuid": f"GPU-{0xABC00000 + index:08x}-0000-0000-0000-000000000000",
        "name": "STUB (not a GPU)",
        "driver_version": "0.0",
        "memory.total": str(80 << 10),
        "memory.used": str((index + 1) << 10),
        "memory.reserved": "0",
        "utilization.gpu": str(10 * index + 5),
        "utilization.memory": str(index),
        "clocks.sm": "1410",
        "clocks.mem": "1593",
        "temperature.gpu": str(40 + index),
        "power.draw": f"{100 * (index + 1)}.00",
        "power.draw.average": f"{100 * (index + 1)}.00",
        "power.draw.instant": "[N/A]",
    }


def main():
    (query,) = (word for word in sys.argv[1:] if word.startswith(OPTION))
    fields = query[len(OPTION) :].split(",")
    for field in fields:
        if field in os.environ.get("FAKE_SMI_UNKNOWN", "").split(","):
            print(f'Field "{field}" is not a valid field to query.\n')
            return 2
    wrong, _, value = os.environ.get("FAKE_SMI_WRONG", "").partition("=")
    for index in range(int(os.environ.get("STUB_GPUS", "2"))):
        told = {**answers(index), wrong: value}
        print(", ".join(told[field] for field in fields))
    return 0


if __name__ == "__main__":
    sys.exit(main())
