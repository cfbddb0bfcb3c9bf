"""List the framework environments that tests use, and build them."""

from __future__ import annotations

import subprocess
import sys

from harness.environments import pythons
from harness.errors import Unavailable

EVERYWHERE = ("torch", "jax", "jax[orbax]", "tensorflow", "keras", "tinygrad", "mpi")
WHERE_PYTHON_37_IS = ("tensorflow@1.15",)


def buildable() -> list[str]:
    names = list(EVERYWHERE)
    for name in WHERE_PYTHON_37_IS:
        try:
            pythons.find(">=3.7,<3.8", purpose=name)
        except Unavailable as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
        else:
            names.append(name)
    return names


if __name__ == "__main__":
    command = [sys.executable, "-m", "harness.cli", "env", "create", *buildable()]
    sys.exit(subprocess.run(command, check=False).returncode)
