"""Write a profile to fill in: what people usually have to say of a machine, as comments."""

from __future__ import annotations

from collections.abc import Iterator

from harness import plugins
from harness.platform.platform import Platform

_NODE = """
# A node; on one of them `bakeoff platforms probe` prints all of it:
# [node]
# cores = 64
# threads_per_core = 2
# memory = [{ kind = "DDR", size = "512 GiB" }]
#
# [[accelerators]]
# model = "NVIDIA A100-SXM4-40GB"
# count = 4
#
# [network]
# fabric = "InfiniBand HDR"
# bandwidth = "25 GB/s"
"""
_REST = """
# Folders that studies read data from and write checkpoints to:
# [storage.scratch]
# path = "/scratch"
# roles = ["data", "checkpoint"]
#
# Where frameworks come from, unless Bakeoff builds them (`bakeoff env create torch`):
# [frameworks.torch]
# modules = ["torch/2.3"]
#
# or: interpreter = "/opt/torch/bin/python3"
#
# An image, which only cells with `container = true` in their study run in:
# [frameworks.torch.container]
# engine = "apptainer"
# image = "/opt/images/torch.sif"
"""


def skeleton(name: str, parent: Platform, launcher: str, written: str) -> str:
    """Add to a profile's text, as comments, what its relative leaves open."""
    how = (
        f"# Fill in what applies: take the '# ' away. Then `bakeoff platforms check {name}`, and\n"
        f"# before a study `bakeoff preflight STUDY --platform {name}`.\n"
    )
    node = "" if parent.node.model_fields_set else _NODE
    return "".join([how, written, *_settings(launcher), node, _REST])


def _settings(launcher: str) -> Iterator[str]:
    """Give the launcher's settings, each with an example and where to look."""
    examples = getattr(plugins.load("launchers", launcher), "EXAMPLES", {})
    if examples:
        yield "\n# [launcher.settings]\n"
    for setting, (example, where) in examples.items():
        line = f'# {setting} = "{example}"'
        yield f"{line:<35} # {where}\n"
