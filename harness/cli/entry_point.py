"""The command's first lines: signals are answered before the command line is imported."""

from __future__ import annotations

from harness.cli import early_signals


def main() -> None:
    """Run the command line."""
    early_signals.end_at_once()
    from harness.cli import main as command_line

    try:
        command_line.main()
    finally:
        early_signals.end_in_silence()  # Python's own end would answer with a traceback, too
