"""Start an agent: ``python -m harness.agent [CORE]``, spoken to on stdin and stdout."""

from __future__ import annotations

import sys

from harness.agent.serve import main

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
