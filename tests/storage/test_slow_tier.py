"""Hold the slow tier to its figures, and to leaving nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.storage.slow_tier import FIGURES, missing, slow_tier

pytestmark = pytest.mark.io
_SIZE = 24 << 20


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_slow_tier_reads_as_fast_as_its_figures_say_and_leaves_nothing(tmp_path: Path) -> None:
    wanted = tomllib.loads(FIGURES.read_text("utf-8"))["ssd"]["bytes_per_s"]
    with slow_tier("ssd", size="128M", beneath=tmp_path) as tier:
        file = tier.folder / "data"
        file.write_bytes(os.urandom(_SIZE))
        os.sync()
        read = (
            "import os,sys,time\n"
            "f=os.open(sys.argv[1],os.O_RDONLY); os.posix_fadvise(f,0,0,os.POSIX_FADV_DONTNEED)\n"
            "t=time.monotonic()\n"
            "while os.read(f,1<<20): pass\n"
            "print(time.monotonic()-t)"
        )
        tier.enter()
        try:
            told = subprocess.run(
                [sys.executable, "-c", read, str(file)], check=True, capture_output=True, text=True
            )
        finally:
            tier.leave()
        assert 0.6 * wanted < _SIZE / float(told.stdout) < 1.15 * wanted
        device, group = tier.device, tier.group
    assert list(tmp_path.iterdir()) == []
    assert not group.exists()
    for _ in range(50):  # the kernel detaches a device when its last user is gone
        if device not in subprocess.run(["losetup"], capture_output=True, text=True).stdout:
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"{device} is still attached")
