"""Links of the built site: how many there are, and which lead nowhere.

python docs/site/links.py build/site
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r'<(?:a|img|link|script|source)\b[^>]*?\b(?:href|src)="([^"]+)"')
ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|//")


def broken(site: Path) -> tuple[int, list[str]]:
    """Count the links within a site, and list the ones to files or anchors that are not there."""
    site = site.resolve()

    @cache
    def anchors(path: Path) -> frozenset[str]:
        return frozenset(ANCHOR.findall(path.read_text()))

    count, faults = 0, list[str]()
    for page in sorted(site.rglob("*.html")):
        for link in LINK.findall(page.read_text()):
            if ELSEWHERE.match(link):
                continue
            count += 1
            file, _, anchor = unquote(link).replace("&amp;", "&").partition("#")
            path = (page.parent / file.partition("?")[0]).resolve() if file else page
            if not path.is_file():
                faults.append(f"{page.relative_to(site)}: {link}")
            elif anchor and path.suffix == ".html" and anchor not in anchors(path):
                faults.append(f"{page.relative_to(site)}: {link}")
    return count, faults


if __name__ == "__main__":
    links, faults = broken(Path(sys.argv[1]))
    print(f"{links:,} links, {len(faults)} broken", *faults, sep="\n")
    raise SystemExit(bool(faults))
