"""Let ``python -m harness.cli`` be the command."""

import os
import sys

import harness
from harness.cli import early_signals, entry_point

early_signals.end_at_once()

# Python puts the current folder first, where a user's own platforms/ or reports/ would be taken for
# ours. (Importing pathlib takes long enough for a signal to come.)
if os.path.join(os.path.abspath(sys.path[0]), "harness") != harness.__path__[0]:  # noqa: PTH100, PTH118
    del sys.path[0]

entry_point.main()
