"""Data of pages: no text of a file ends its script."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from pele_ocl.painting.packing import data_for_page

ATTACKS = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "a & b",
    "x\u2028y\u2029z",
    "<img src=x onerror=alert(1)>",
)


class Tags(HTMLParser):
    """Tags of a page, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


def test_no_text_ends_the_script() -> None:
    data = {"names": list(ATTACKS), **{attack: 1 for attack in ATTACKS}}
    text = data_for_page(data)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == data
    page = Tags()
    page.feed(f'<script id="data" type="application/json">{text}</script><p>end</p>')
    assert page.found == ["script", "p"]
