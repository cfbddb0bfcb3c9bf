"""The gallery holds the pages that its command makes, each with what a reader is promised."""

from __future__ import annotations

import re

import pytest

from tests.gallery import GALLERY, STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_each_page_is_there_and_says_its_machine_and_answer_and_no_place(name):
    page = (GALLERY / f"{name}.html").read_text(encoding="utf-8")
    assert re.search(r'<p class="machine">[^<]*cores', page)
    assert 'class="answer' in page
    assert page.endswith("</html>")
    assert not re.search(r"[\"' >]/(?:root|home|tmp|work)/", page)


def test_the_gallery_lists_exactly_its_pages():
    text = (GALLERY / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([\w-]+)\.html\)", text)
    assert sorted(listed) == sorted(STUDIES)
    assert sorted(page.stem for page in GALLERY.glob("*.html")) == sorted(STUDIES)
    assert (GALLERY / "first-screen.png").is_file()
