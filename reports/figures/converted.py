"""Turn a figure into PDF or PNG with a program of this machine that draws SVG."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import commands
from harness.errors import Unavailable

_PROGRAMS = {
    "rsvg-convert": (
        "--dpi-x",
        "300",
        "--dpi-y",
        "300",
        "--format",
        "{form}",
        "-o",
        "{to}",
        "{svg}",
    ),
    "cairosvg": ("--dpi", "300", "--format", "{form}", "-o", "{to}", "{svg}"),
    "inkscape": ("--export-dpi=300", "--export-type={form}", "--export-filename={to}", "{svg}"),
}
_LONGEST_S = 120.0


def converted(svg: str, form: str) -> bytes:
    """Give a figure as ``pdf`` or ``png``; 300 dots an inch where it has dots."""
    name = next((name for name in _PROGRAMS if shutil.which(name)), None)
    if name is None:
        raise Unavailable(
            f"{form} needs a program that draws SVG, and none of {', '.join(_PROGRAMS)} is here. "
            "Install one (Debian: librsvg2-bin), or take --to svg."
        )
    with TemporaryDirectory() as folder:
        drawn, to = Path(folder) / "figure.svg", Path(folder) / f"figure.{form}"
        drawn.write_text(svg, encoding="utf-8")
        words = [word.format(form=form, to=to, svg=drawn) for word in _PROGRAMS[name]]
        commands.run([name, *words], timeout_s=_LONGEST_S).required()
        return to.read_bytes()
