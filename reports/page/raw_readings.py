"""Write the raw readings of timelines beside a page, whose own numbers are binned.

A reading is never lost to a page's size: each timeline is one gzipped CSV of channel, seconds and
value. The page links to it and works without it.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

from harness.analysis.evidence import Timeline
from harness.store.contained import Contained
from reports.exports.formats.csv import of_rows


def _csv(timeline: Timeline) -> bytes:
    heads = ("channel", "t_s", f"{timeline.full_title}, {timeline.unit}")
    rows = (
        (channel.name, f"{moment:.6f}", f"{value:.9g}" if math.isfinite(value) else "")
        for channel in timeline.channels
        for moment, value in zip(channel.times_s, channel.values, strict=True)
    )
    return gzip.compress(of_rows(heads, rows).encode(), 6, mtime=0)


def write_readings(timelines: Sequence[Timeline], page: Path, files: Contained) -> dict[str, str]:
    """Write one file per timeline into a folder named after the page.

    Give for each chart where its file lies, from the page.
    """
    places = {}
    for index, timeline in enumerate(timelines, 1):
        folder = page.with_name(f"{page.stem}-data")
        files.make_folder(folder)
        file = folder / f"timeline-{index}.csv.gz"
        files.write(file, _csv(timeline))
        places[f"timeline-{index}"] = f"{folder.name}/{file.name}"
    return places
