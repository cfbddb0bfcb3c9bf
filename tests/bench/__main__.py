"""Run every benchmark of Bakeoff itself, one process each: ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def benchmarks() -> list[str]:
    files = [path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_")]
    folders = [path.parent.name for path in HERE.glob("*/__main__.py")]
    return sorted([*files, *folders])


def main() -> int:
    failed = []
    for name in benchmarks():
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.bench.{name}"], check=False).returncode:
            failed.append(name)
    print(f"Not reached: {', '.join(failed)}" if failed else "Everything reached.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
