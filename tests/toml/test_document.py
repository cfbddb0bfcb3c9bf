"""Hold the reader of TOML files to files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.toml.document import read_document


def test_a_device_without_end_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"/dev/zero: this file is larger than 16 MiB\."):
        read_document(Path("/dev/zero"))
