"""This file lets ``python -m harness.cli`` be the command."""

from harness.cli.main import main

main()
