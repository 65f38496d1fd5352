"""Put the tables in docs/performance between their marks in docs/performance.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
TABLES = PAGE.with_suffix("")
MARKED = re.compile(r"<!-- from performance/([\w.-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """Fill the page with each file's content between its marks."""

    def content(mark: re.Match[str]) -> str:
        return f"<!-- from performance/{mark[1]} -->\n{(TABLES / mark[1]).read_text()}<!-- end -->"

    return MARKED.sub(content, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
