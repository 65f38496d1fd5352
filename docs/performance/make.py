"""Put the tables that the timing commands wrote to this folder between their marks in docs/performance.md."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "performance.md"
MARKED = re.compile(r"<!-- from performance/([\w.-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """The page with each file's content between its marks."""

    def content(mark: re.Match[str]) -> str:
        return f"<!-- from performance/{mark[1]} -->\n{(HERE / mark[1]).read_text()}<!-- end -->"

    return MARKED.sub(content, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
