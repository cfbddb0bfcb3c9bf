"""Let ``python -m harness.cli`` be the command."""

import sys
from pathlib import Path

import harness

# Python puts the current folder first, where a user's own platforms/ or reports/ would be taken for
# ours.
if Path(sys.path[0]).absolute() != Path(harness.__path__[0]).parent:
    del sys.path[0]

from harness.cli.main import main

main()
