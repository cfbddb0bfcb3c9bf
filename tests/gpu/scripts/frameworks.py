"""Say which version of a framework this interpreter has, and which GPUs that sees.

``python frameworks.py torch`` prints {version, gpus} or {problem}.
"""

import json
import sys


def torch():
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = [torch.cuda.get_device_name(number) for number in range(count)]
    return {"version": torch.__version__, "gpus": gpus}


def jax():
    import jax

    try:
        gpus = [device.device_kind for device in jax.devices("gpu")]
    except RuntimeError:  # it has no such backend, or cannot start it
        gpus = []
    return {"version": jax.__version__, "gpus": gpus}


def main():
    name = sys.argv[1]
    try:
        told = {"torch": torch, "jax": jax}[name]()
    except Exception as problem:  # noqa: BLE001 an installation may be broken in any way
        told = {"problem": f"{name}: {type(problem).__name__}: {problem}"}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
