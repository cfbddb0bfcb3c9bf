"""Set the commands in sentences apart, which the terminal has between backticks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_COMMAND = re.compile(r"`([^`]+)`")


def coded(text: str) -> Markup:
    """Escape a text, and mark what stands between backticks as code."""
    from markupsafe import Markup, escape

    if "`" not in text:
        return escape(text)
    code = Markup("<code>{}</code>")
    parts = enumerate(_COMMAND.split(text))
    return Markup("").join(code.format(part) if at % 2 else part for at, part in parts)
