"""A value of a wrong kind is refused by naming every kind that is allowed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.store.typed import read

FACTOR: Any = str | int | float | bool | None
IN_ANOTHER_ORDER: Any = bool | None | float | str | int


@pytest.mark.parametrize("kind", [FACTOR, IN_ANOTHER_ORDER])
def test_what_may_be_of_several_kinds_is_refused_by_naming_all(kind: Any) -> None:
    words = (
        "cells[0].factors.compile is not a text, true or false, a whole number, a number or null"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        read(kind, [True], "cells[0].factors.compile")


def test_what_is_on_or_off_or_unknown_is_refused_as_such() -> None:
    flag: Any = bool | None
    with pytest.raises(ValueError, match=r"^compile is not true or false$"):
        read(flag, [True], "compile")
